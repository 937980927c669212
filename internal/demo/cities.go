package demo

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/server"
)

// The tables are lines of fields divided by "|": name, country code, people in
// thousands, latitude, longitude, time zone; and code, name, continent, currency.
// The figures are rounded, for a demo and not for reference.
var (
	//go:embed data/cities.txt
	cityTable string
	//go:embed data/countries.txt
	countryTable string
)

type city struct {
	ID          int     `json:"id"`
	Name        string  `json:"name"`
	Country     string  `json:"country"`
	CountryCode string  `json:"country_code"`
	Continent   string  `json:"continent"`
	Population  int     `json:"population"`
	Latitude    float64 `json:"latitude"`
	Longitude   float64 `json:"longitude"`
	Timezone    string  `json:"timezone"`
}

type country struct {
	Code      string `json:"code"`
	Name      string `json:"name"`
	Continent string `json:"continent"`
	Currency  string `json:"currency"`
}

// cities is the table, by population, largest first. It never changes.
type cities struct {
	all       []city
	countries map[string]country
}

func newCities() *cities {
	c := &cities{countries: map[string]country{}}
	for line := range strings.Lines(countryTable) {
		f := strings.Split(strings.TrimSpace(line), "|")
		c.countries[f[0]] = country{Code: f[0], Name: f[1], Continent: f[2], Currency: f[3]}
	}
	for line := range strings.Lines(cityTable) {
		f := strings.Split(strings.TrimSpace(line), "|")
		thousands, _ := strconv.Atoi(f[2])
		lat, _ := strconv.ParseFloat(f[3], 64)
		lon, _ := strconv.ParseFloat(f[4], 64)
		land := c.countries[f[1]]
		c.all = append(c.all, city{
			ID: len(c.all) + 1, Name: f[0], Country: land.Name, CountryCode: f[1], Continent: land.Continent,
			Population: thousands * 1000, Latitude: lat, Longitude: lon, Timezone: f[5],
		})
	}
	return c
}

const filterSchema = `
	"country": {"type": "string", "description": "ISO 3166-1 alpha-2 code of the country, for example JP", "pattern": "^[A-Za-z]{2}$"},
	"continent": {"type": "string", "description": "Limit to one continent", "enum": ["Africa", "Asia", "Europe", "North America", "South America", "Oceania"]},
	"min_population": {"type": "integer", "description": "Smallest population to include", "minimum": 0},
	"max_population": {"type": "integer", "description": "Largest population to include", "minimum": 0}`

// filter is the part of the arguments that several tools share.
type filter struct {
	Country       string `json:"country"`
	Continent     string `json:"continent"`
	MinPopulation int    `json:"min_population"`
	MaxPopulation int    `json:"max_population"`
}

func (f filter) keeps(c city) bool {
	return (f.Country == "" || strings.EqualFold(f.Country, c.CountryCode)) &&
		(f.Continent == "" || f.Continent == c.Continent) &&
		c.Population >= f.MinPopulation && (f.MaxPopulation == 0 || c.Population <= f.MaxPopulation)
}

func (c *cities) tools() []server.ServerTool {
	return []server.ServerTool{
		tool("search_cities", "Search cities", readOnly,
			`Search the city database by name. Matching ignores case and finds the text anywhere in the name. Results are ordered by population, largest first, and paged with limit and offset. Use get_city when you already know the exact name.`,
			`{"type": "object", "properties": {
				"query": {"type": "string", "description": "Text to find in the name of the city; leave out to list all cities that pass the filters", "maxLength": 100},`+filterSchema+`,
				"limit": {"type": "integer", "description": "Maximum number of cities to return", "minimum": 1, "maximum": 100, "default": 20},
				"offset": {"type": "integer", "description": "Number of cities to skip, for paging", "minimum": 0, "default": 0}
			}, "additionalProperties": false}`, c.search),
		tool("get_city", "Get a city", readOnly,
			`Get everything known about one city: country, continent, currency, population, coordinates and time zone, and the three nearest other cities. Where several cities share the name, give the country as well.`,
			`{"type": "object", "properties": {
				"name": {"type": "string", "description": "Name of the city, for example Lisbon", "minLength": 1},
				"country": {"type": "string", "description": "ISO 3166-1 alpha-2 code of the country, where the name is not unique", "pattern": "^[A-Za-z]{2}$"}
			}, "required": ["name"], "additionalProperties": false}`, c.get),
		tool("top_cities", "Largest cities", readOnly,
			`Rank cities by population, by latitude or by name, over the whole world or limited to a country, a continent or a range of population.`,
			`{"type": "object", "properties": {
				"by": {"type": "string", "description": "What to rank by", "enum": ["population", "latitude", "name"], "default": "population"},
				"order": {"type": "string", "description": "Sort direction; desc for population and latitude, asc for name when left out", "enum": ["asc", "desc"]},`+filterSchema+`,
				"limit": {"type": "integer", "description": "Number of cities to return", "minimum": 1, "maximum": 100, "default": 10}
			}, "additionalProperties": false}`, c.top),
		tool("nearby_cities", "Cities nearby", readOnly,
			`Find cities around a point, nearest first, with the great-circle distance and the initial bearing. Give either the name of a city or a pair of coordinates as the centre.`,
			`{"type": "object", "properties": {
				"city": {"type": "string", "description": "Name of the city at the centre"},
				"location": {"type": "object", "description": "Coordinates of the centre in decimal degrees (WGS 84); used when city is not given", "properties": {
					"latitude": {"type": "number", "minimum": -90, "maximum": 90},
					"longitude": {"type": "number", "minimum": -180, "maximum": 180}
				}, "required": ["latitude", "longitude"]},
				"radius_km": {"type": "number", "description": "Search radius in kilometres", "exclusiveMinimum": 0, "maximum": 20015, "default": 500},
				"limit": {"type": "integer", "description": "Maximum number of cities to return", "minimum": 1, "maximum": 100, "default": 10}
			}, "additionalProperties": false}`, c.near),
		withOutput(tool("city_distance", "Distance between cities", readOnly,
			`Compute the great-circle distance between two cities in kilometres and miles, the initial bearing in degrees and an estimate of the flight time.`,
			`{"type": "object", "properties": {
				"from": {"type": "string", "description": "Name of the city to start from"},
				"to": {"type": "string", "description": "Name of the city to go to"}
			}, "required": ["from", "to"], "additionalProperties": false}`, c.distance),
			`{"type": "object", "properties": {
				"from": {"type": "string"}, "to": {"type": "string"}, "distance_km": {"type": "number"}, "distance_miles": {"type": "number"},
				"bearing_degrees": {"type": "number"}, "flight_hours": {"type": "number"}
			}, "required": ["from", "to", "distance_km", "distance_miles", "bearing_degrees", "flight_hours"]}`),
		tool("city_statistics", "Statistics", readOnly,
			`Summarise the cities of each continent, country or time zone: how many there are, their total, mean, smallest and largest population, and the largest city. Ordered by total population.`,
			`{"type": "object", "properties": {
				"group_by": {"type": "string", "description": "What a row of the result stands for", "enum": ["continent", "country", "timezone"], "default": "continent"},`+filterSchema+`,
				"limit": {"type": "integer", "description": "Maximum number of groups to return", "minimum": 1, "maximum": 200, "default": 50}
			}, "additionalProperties": false}`, c.statistics),
	}
}

type searchArgs struct {
	filter
	Query         string
	Limit, Offset int
}

func (c *cities) search(a searchArgs) (any, error) {
	found := []city{}
	for _, one := range c.all {
		if a.keeps(one) && strings.Contains(strings.ToLower(one.Name), strings.ToLower(a.Query)) {
			found = append(found, one)
		}
	}
	from := min(max(a.Offset, 0), len(found))
	to := min(from+orDefault(a.Limit, 20), len(found))
	return map[string]any{"total": len(found), "offset": from, "cities": found[from:max(from, to)]}, nil
}

type nameArgs struct{ Name, Country string }

func (c *cities) get(a nameArgs) (any, error) {
	one, err := c.find(a.Name, a.Country)
	if err != nil {
		return nil, err
	}
	return struct {
		city
		Currency string `json:"currency"`
		Nearest  []near `json:"nearest"`
	}{one, c.countries[one.CountryCode].Currency, c.around(one, 20015, 3)}, nil
}

// find is the city of that name, which must be the only one.
func (c *cities) find(name, code string) (city, error) {
	var found []city
	for _, one := range c.all {
		if strings.EqualFold(one.Name, strings.TrimSpace(name)) && (code == "" || strings.EqualFold(code, one.CountryCode)) {
			found = append(found, one)
		}
	}
	switch len(found) {
	case 0:
		return city{}, fmt.Errorf("no city named %q; search_cities finds parts of names", name)
	case 1:
		return found[0], nil
	}
	codes := make([]string, len(found))
	for i := range found {
		codes[i] = found[i].CountryCode
	}
	return city{}, fmt.Errorf("%q is in several countries (%s); give the country", name, strings.Join(codes, ", "))
}

type topArgs struct {
	filter
	By, Order string
	Limit     int
}

func (c *cities) top(a topArgs) (any, error) {
	found := []city{}
	for _, one := range c.all {
		if a.keeps(one) {
			found = append(found, one)
		}
	}
	order := orDefault(a.Order, "desc")
	switch orDefault(a.By, "population") {
	case "population":
		slices.SortStableFunc(found, func(x, y city) int { return cmp.Compare(x.Population, y.Population) })
	case "latitude":
		slices.SortStableFunc(found, func(x, y city) int { return cmp.Compare(x.Latitude, y.Latitude) })
	case "name":
		slices.SortStableFunc(found, func(x, y city) int { return cmp.Compare(x.Name, y.Name) })
		order = orDefault(a.Order, "asc")
	default:
		return nil, fmt.Errorf("cannot rank by %q", a.By)
	}
	if order == "desc" {
		slices.Reverse(found)
	}
	return found[:min(len(found), max(orDefault(a.Limit, 10), 0))], nil
}

// near is a city and where it is from a centre.
type near struct {
	Name       string  `json:"name"`
	Country    string  `json:"country"`
	Population int     `json:"population"`
	DistanceKm float64 `json:"distance_km"`
	Bearing    float64 `json:"bearing"`
}

type nearArgs struct {
	City     string
	Location *struct{ Latitude, Longitude float64 }
	RadiusKm float64 `json:"radius_km"`
	Limit    int
}

func (c *cities) near(a nearArgs) (any, error) {
	var centre city
	switch {
	case a.City != "":
		var err error
		if centre, err = c.find(a.City, ""); err != nil {
			return nil, err
		}
	case a.Location != nil:
		centre = city{Latitude: a.Location.Latitude, Longitude: a.Location.Longitude}
	default:
		return nil, errors.New("give city or location")
	}
	radius := orDefault(a.RadiusKm, 500)
	return map[string]any{
		"center":    map[string]float64{"latitude": centre.Latitude, "longitude": centre.Longitude},
		"radius_km": radius,
		"cities":    c.around(centre, radius, max(orDefault(a.Limit, 10), 0)),
	}, nil
}

// around is the cities within radius of centre, nearest first, without centre itself.
func (c *cities) around(centre city, radius float64, limit int) []near {
	found := []near{}
	for _, one := range c.all {
		if d := kilometres(centre, one); d <= radius && one.ID != centre.ID {
			found = append(found, near{one.Name, one.Country, one.Population, round(d, 1), round(bearing(centre, one), 0)})
		}
	}
	slices.SortStableFunc(found, func(x, y near) int { return cmp.Compare(x.DistanceKm, y.DistanceKm) })
	return found[:min(limit, len(found))]
}

type pairArgs struct{ From, To string }

func (c *cities) distance(a pairArgs) (any, error) {
	from, err := c.find(a.From, "")
	if err != nil {
		return nil, err
	}
	to, err := c.find(a.To, "")
	if err != nil {
		return nil, err
	}
	d := kilometres(from, to)
	return struct {
		From     string  `json:"from"`
		To       string  `json:"to"`
		Km       float64 `json:"distance_km"`
		Miles    float64 `json:"distance_miles"`
		Bearing  float64 `json:"bearing_degrees"`
		FlyHours float64 `json:"flight_hours"`
	}{from.Name, to.Name, round(d, 1), round(d/1.609344, 1), round(bearing(from, to), 1), round(d/850+0.5, 1)}, nil
}

type statisticsArgs struct {
	filter
	GroupBy string `json:"group_by"`
	Limit   int
}

type group struct {
	Group       string `json:"group"`
	Cities      int    `json:"cities"`
	Total       int    `json:"total_population"`
	Mean        int    `json:"mean_population"`
	Smallest    int    `json:"smallest_population"`
	Largest     int    `json:"largest_population"`
	LargestCity string `json:"largest_city"`
}

func (c *cities) statistics(a statisticsArgs) (any, error) {
	groups := map[string]*group{}
	for _, one := range c.all { // the largest first
		if !a.keeps(one) {
			continue
		}
		key := one.Continent
		switch a.GroupBy {
		case "country":
			key = one.Country
		case "timezone":
			key = one.Timezone
		}
		g := groups[key]
		if g == nil {
			g = &group{Group: key, Largest: one.Population, LargestCity: one.Name}
			groups[key] = g
		}
		g.Cities++
		g.Total += one.Population
		g.Mean = g.Total / g.Cities
		g.Smallest = one.Population
	}
	rows := make([]group, 0, len(groups))
	for _, g := range groups {
		rows = append(rows, *g)
	}
	slices.SortFunc(rows, func(x, y group) int {
		return cmp.Or(cmp.Compare(y.Total, x.Total), cmp.Compare(x.Group, y.Group))
	})
	return rows[:min(len(rows), max(orDefault(a.Limit, 50), 0))], nil
}

const earthRadiusKm = 6371.0

// kilometres is the great-circle distance (haversine).
func kilometres(a, b city) float64 {
	lat1, lat2 := radians(a.Latitude), radians(b.Latitude)
	x, y := math.Sin((lat2-lat1)/2), math.Sin(radians(b.Longitude-a.Longitude)/2)
	return 2 * earthRadiusKm * math.Asin(min(1, math.Sqrt(x*x+math.Cos(lat1)*math.Cos(lat2)*y*y)))
}

// bearing is the direction from a to b at the start, in degrees from north.
func bearing(a, b city) float64 {
	lat1, lat2, d := radians(a.Latitude), radians(b.Latitude), radians(b.Longitude-a.Longitude)
	angle := math.Atan2(math.Sin(d)*math.Cos(lat2), math.Cos(lat1)*math.Sin(lat2)-math.Sin(lat1)*math.Cos(lat2)*math.Cos(d))
	return math.Mod(angle*180/math.Pi+360, 360)
}

func radians(degrees float64) float64 { return degrees * math.Pi / 180 }

func round(x float64, digits int) float64 {
	p := math.Pow10(digits)
	return math.Round(x*p) / p
}
