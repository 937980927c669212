package demo

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"github.com/mark3labs/mcp-go/server"
)

const placeSchema = `
	"latitude": {"type": "number", "description": "Latitude in decimal degrees (WGS 84), north positive", "minimum": -90, "maximum": 90},
	"longitude": {"type": "number", "description": "Longitude in decimal degrees (WGS 84), east positive", "minimum": -180, "maximum": 180},
	"units": {"type": "string", "description": "metric: °C, km/h, mm. imperial: °F, mph, inch", "enum": ["metric", "imperial"], "default": "metric"}`

const dateSchema = `{"type": "string", "format": "date", "description": "%s"}`

func weatherTools() []server.ServerTool {
	return []server.ServerTool{
		tool("current_weather", "Current weather", readOnly,
			`Get the current conditions at a place: temperature, apparent temperature, humidity, pressure, wind, cloud cover and a short description. The data is synthetic; it depends on the place and the time only, and the time stands still at 2026-01-15 09:00 UTC.`,
			`{"type": "object", "properties": {`+placeSchema+`}, "required": ["latitude", "longitude"], "additionalProperties": false}`, currentWeather),
		tool("forecast", "Weather forecast", readOnly,
			`Get a daily or hourly forecast for a place, at most 16 days ahead. Daily rows have the range of temperature, precipitation and its probability, the strongest wind, sunshine and a description; hourly rows have the single values.`,
			`{"type": "object", "properties": {`+placeSchema+`,
				"granularity": {"type": "string", "description": "What a row of the result stands for", "enum": ["daily", "hourly"], "default": "daily"},
				"days": {"type": "integer", "description": "Number of days, beginning with start_date", "minimum": 1, "maximum": 16, "default": 7},
				"start_date": `+fmt.Sprintf(dateSchema, "First day, from 2026-01-15 on, which is today and the default")+`
			}, "required": ["latitude", "longitude"], "additionalProperties": false}`, forecast),
		tool("climate", "Climate of a place", readOnly,
			`Get the long-term monthly means of a place: temperature by day and by night, precipitation, rainy days and hours of sunshine a day.`,
			`{"type": "object", "properties": {`+placeSchema+`,
				"months": {"type": "array", "description": "Months to return, 1 for January; all when left out", "items": {"type": "integer", "minimum": 1, "maximum": 12}, "uniqueItems": true, "maxItems": 12}
			}, "required": ["latitude", "longitude"], "additionalProperties": false}`, climate),
		tool("compare_weather", "Compare places", readOnly,
			`Compare the weather of several places on one day, side by side, in the order in which they are given.`,
			`{"type": "object", "properties": {
				"places": {"type": "array", "description": "The places to compare", "minItems": 2, "maxItems": 20, "items": {"type": "object", "properties": {
					"name": {"type": "string", "description": "Name to show"},
					"latitude": {"type": "number", "minimum": -90, "maximum": 90},
					"longitude": {"type": "number", "minimum": -180, "maximum": 180}
				}, "required": ["name", "latitude", "longitude"], "additionalProperties": false}},
				"date": `+fmt.Sprintf(dateSchema, "The day; 2026-01-15 when left out")+`,
				"units": {"type": "string", "enum": ["metric", "imperial"], "default": "metric"}
			}, "required": ["places"], "additionalProperties": false}`, compareWeather),
	}
}

type place struct {
	Name      string   `json:"name"`
	Latitude  *float64 `json:"latitude"`
	Longitude *float64 `json:"longitude"`
	Units     string   `json:"units"`
}

func (p place) check() error {
	if p.Latitude == nil || p.Longitude == nil {
		return errors.New("give latitude and longitude")
	}
	if math.Abs(*p.Latitude) > 90 || math.Abs(*p.Longitude) > 180 {
		return fmt.Errorf("no such place: %v, %v", *p.Latitude, *p.Longitude)
	}
	return nil
}

// chance is a number from 0 to 1 that belongs to the place, the hour and what it is for.
func (p place) chance(t time.Time, what string) float64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%.2f %.2f %d %s", *p.Latitude, *p.Longitude, t.Unix()/3600, what)
	x := h.Sum64()
	x ^= x >> 33 // neighbouring hours differ in their last byte only
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

// temperature is in °C: the season and the hour at the place, and some chance of the day.
func (p place) temperature(t time.Time) float64 {
	season := math.Cos(2 * math.Pi * float64(t.YearDay()-200) / 365)
	if *p.Latitude < 0 {
		season = -season
	}
	north := math.Abs(*p.Latitude)
	local := math.Mod(float64(t.Hour())+*p.Longitude/15+24, 24)
	daily := 4 * math.Cos(2*math.Pi*(local-15)/24)
	day := t.Truncate(24 * time.Hour)
	return 28 - north*0.45 + season*north*0.25 + daily + 6*(p.chance(day, "day")-0.5)
}

// rain is in mm within the hour; most hours have none.
func (p place) rain(t time.Time) float64 {
	wet := p.chance(t.Truncate(24*time.Hour), "rain")
	if wet < 0.55 || p.chance(t, "rain") < 0.6 {
		return 0
	}
	return 4 * (wet - 0.5) * p.chance(t, "amount")
}

func (p place) imperial() bool { return p.Units == "imperial" }

func (p place) degrees(celsius float64) float64 {
	if p.imperial() {
		celsius = celsius*9/5 + 32
	}
	return round(celsius, 1)
}

func (p place) speed(kmh float64) float64 {
	if p.imperial() {
		kmh /= 1.609344
	}
	return round(kmh, 1)
}

func (p place) depth(mm float64) float64 {
	if p.imperial() {
		return round(mm/25.4, 2)
	}
	return round(mm, 1)
}

// hour is a row of an hourly forecast.
type hour struct {
	Time        string  `json:"time"`
	Temperature float64 `json:"temperature"`
	Humidity    int     `json:"humidity"`
	Rain        float64 `json:"precipitation"`
	Wind        float64 `json:"wind_speed"`
	Direction   int     `json:"wind_direction"`
	Clouds      int     `json:"cloud_cover"`
	Description string  `json:"description"`
}

func (p place) hour(t time.Time) hour {
	rain := p.rain(t)
	clouds := int(100 * p.chance(t.Truncate(6*time.Hour), "clouds"))
	if rain > 0 {
		clouds = max(clouds, 70)
	}
	return hour{
		Time: t.Format("2006-01-02T15:04"), Temperature: p.degrees(p.temperature(t)),
		Humidity: 35 + int(60*p.chance(t.Truncate(3*time.Hour), "humidity")), Rain: p.depth(rain),
		Wind: p.speed(4 + 30*p.chance(t.Truncate(3*time.Hour), "wind")), Direction: int(360 * p.chance(t.Truncate(12*time.Hour), "direction")),
		Clouds: clouds, Description: sky(p.temperature(t), rain, clouds),
	}
}

func sky(celsius, rain float64, clouds int) string {
	switch {
	case rain > 0 && celsius < 0.5:
		return "snow"
	case rain > 0.8:
		return "heavy rain"
	case rain > 0:
		return "light rain"
	case clouds > 75:
		return "overcast"
	case clouds > 30:
		return "partly cloudy"
	}
	return "clear sky"
}

func currentWeather(p place) (any, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	h := p.hour(start)
	return map[string]any{
		"location": map[string]float64{"latitude": *p.Latitude, "longitude": *p.Longitude},
		"units":    orDefault(p.Units, "metric"), "current": h,
		"apparent_temperature": round(h.Temperature-h.Wind/12, 1),
		"pressure_hpa":         round(990+40*p.chance(start, "pressure"), 1),
	}, nil
}

type forecastArgs struct {
	place
	Granularity string
	Days        int
	StartDate   string `json:"start_date"`
}

func forecast(a forecastArgs) (any, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	first, err := date(a.StartDate)
	if err != nil {
		return nil, err
	}
	count := min(max(orDefault(a.Days, 7), 1), 16)
	result := map[string]any{"location": map[string]float64{"latitude": *a.Latitude, "longitude": *a.Longitude}, "units": orDefault(a.Units, "metric")}
	if a.Granularity == "hourly" {
		rows := make([]hour, 0, count*24)
		for i := range count * 24 {
			rows = append(rows, a.hour(first.Add(time.Duration(i)*time.Hour)))
		}
		result["hourly"] = rows
		return result, nil
	}
	rows := make([]day, 0, count)
	for i := range count {
		rows = append(rows, a.day(first.AddDate(0, 0, i)))
	}
	result["daily"] = rows
	return result, nil
}

// date is midnight of the day, of today for none.
func date(text string) (time.Time, error) {
	if text == "" {
		return start.Truncate(24 * time.Hour), nil
	}
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return t, fmt.Errorf("%q is not a date such as 2026-01-15", text)
	}
	return t, nil
}

// day is a row of a daily forecast.
type day struct {
	Date        string  `json:"date"`
	Low         float64 `json:"temperature_min"`
	High        float64 `json:"temperature_max"`
	Rain        float64 `json:"precipitation"`
	Probability int     `json:"precipitation_probability"`
	Wind        float64 `json:"wind_speed_max"`
	Sun         float64 `json:"sunshine_hours"`
	Description string  `json:"description"`
}

func (p place) day(t time.Time) day {
	d := day{Date: t.Format(time.DateOnly), Low: math.Inf(1), High: math.Inf(-1)}
	wet, clouds, rain := 0, 0, 0.0
	for i := range 24 {
		at := t.Add(time.Duration(i) * time.Hour)
		h := p.hour(at)
		d.Low, d.High, d.Wind = min(d.Low, h.Temperature), max(d.High, h.Temperature), max(d.Wind, h.Wind)
		clouds += h.Clouds
		if r := p.rain(at); r > 0 {
			wet++
			rain += r
		}
	}
	d.Rain, d.Probability = p.depth(rain), min(95, wet*6)
	d.Sun = round(12*(1-float64(clouds)/2400), 1)
	d.Description = sky(p.temperature(t.Add(12*time.Hour)), rain/12, clouds/24)
	return d
}

type climateArgs struct {
	place
	Months []int
}

func climate(a climateArgs) (any, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	type row struct {
		Month string  `json:"month"`
		High  float64 `json:"mean_high"`
		Low   float64 `json:"mean_low"`
		Rain  float64 `json:"precipitation"`
		Days  int     `json:"rainy_days"`
		Sun   float64 `json:"sunshine_hours"`
	}
	if len(a.Months) == 0 {
		a.Months = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	}
	rows := make([]row, 0, len(a.Months))
	for _, m := range a.Months {
		if m < 1 || m > 12 {
			return nil, fmt.Errorf("no month %d", m)
		}
		t := time.Date(2025, time.Month(m), 15, 0, 0, 0, 0, time.UTC)
		noon := a.temperature(t.Add(time.Duration(15-*a.Longitude/15) * time.Hour))
		wet := a.chance(t, "wet")
		rows = append(rows, row{time.Month(m).String(), a.degrees(noon), a.degrees(noon - 8), a.depth(10 + 120*wet), 2 + int(16*wet), round(4+7*(1-wet), 1)})
	}
	return rows, nil
}

type compareArgs struct {
	Places      []place
	Date, Units string
}

func compareWeather(a compareArgs) (any, error) {
	when, err := date(a.Date)
	if err != nil {
		return nil, err
	}
	type row struct {
		Name string `json:"name"`
		day
	}
	rows := make([]row, 0, len(a.Places))
	for i, p := range a.Places {
		p.Units = a.Units
		if err := p.check(); err != nil {
			return nil, fmt.Errorf("places[%d]: %w", i, err)
		}
		rows = append(rows, row{p.Name, p.day(when)})
	}
	return rows, nil
}
