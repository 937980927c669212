# The cities, by population, largest first. The figures are rounded, not for reference.
def init: .countries as $countries | [.cities | to_entries[]
  | .key as $i | .value as [$name, $code, $thousands, $lat, $lon, $zone]
  | $countries[$code] as [$country, $continent, $currency]
  | {id: ($i + 1), name: $name, country: $country, country_code: $code, continent: $continent, population: ($thousands * 1000),
     latitude: $lat, longitude: $lon, timezone: $zone, currency: $currency}];

def row: del(.currency);
def kept: ($a.country // "" | ascii_upcase) as $code | ($a.continent // "") as $continent
  | map(select(($code == "" or .country_code == $code) and ($continent == "" or .continent == $continent)
    and .population >= ($a.min_population // 0) and .population <= ($a.max_population // infinite)));
def named($name): ($name | ascii_downcase) as $lower | ($a.country // "" | ascii_upcase) as $code
  | map(select((.name | ascii_downcase) == $lower and ($code == "" or .country_code == $code)))
  | if length == 0 then error("no city named \($name | tojson); search_cities finds parts of names")
    elif length == 1 then .[0]
    else error("\($name | tojson) is in several countries (\(map(.country_code) | join(", "))); give the country") end;

# The great-circle distance to $to (haversine) in kilometres, and the direction at
# the start in degrees from north.
def way($to): (atan2(0; -1) / 180) as $radian
  | (.latitude * $radian) as $lat1 | ($to.latitude * $radian) as $lat2 | (($to.longitude - .longitude) * $radian) as $d
  | {km: (pow((($lat2 - $lat1) / 2) | sin; 2) + ($lat1 | cos) * ($lat2 | cos) * pow($d / 2 | sin; 2) | [sqrt, 1] | min | asin * 2 * 6371),
     bearing: (atan2(($d | sin) * ($lat2 | cos); ($lat1 | cos) * ($lat2 | sin) - ($lat1 | sin) * ($lat2 | cos) * ($d | cos)) / $radian + 360 | fmod(.; 360))};
def around($centre; $radius): map(select(.id != $centre.id) | . as $to | ($centre | way($to)) as $way | select($way.km <= $radius)
  | {name, country, population, distance_km: ($way.km | rounded(1)), bearing: ($way.bearing | rounded(0))}) | sort_by(.distance_km);

def search_cities: kept | map(select(.name | ascii_downcase | contains($a.query // "" | ascii_downcase)))
  | {total: length, offset: $a.offset, cities: (.[$a.offset:][:$a.limit] | map(row))};
def get_city: named($a.name) as $city | $city + {nearest: around($city; infinite)[:3]};
def top_cities: kept | sort_by(.[$a.by])
  | if ($a.order // {name: "asc"}[$a.by]) == "asc" then . else reverse end | .[:$a.limit] | map(row);
def nearby_cities: (if $a.city then named($a.city) else $a.location // error("give city or location") end) as $centre
  | {center: ($centre | {latitude, longitude}), radius_km: $a.radius_km, cities: around($centre; $a.radius_km)[:$a.limit]};
def city_distance: named($a.from) as $from | named($a.to) as $to | ($from | way($to))
  | {from: $from.name, to: $to.name, distance_km: (.km | rounded(1)), distance_miles: (.km / 1.609344 | rounded(1)),
     bearing_degrees: (.bearing | rounded(1)), flight_hours: (.km / 850 + 0.5 | rounded(1))};
def city_statistics: kept | group_by(.[$a.group_by]) | map((map(.population) | add) as $total
  | {group: .[0][$a.group_by], cities: length, total_population: $total, mean_population: ($total / length | floor),
     smallest_population: .[-1].population, largest_population: .[0].population, largest_city: .[0].name})
  | sort_by(-.total_population) | .[:$a.limit];
