# Made up from the place and the time alone; $p has latitude, longitude and units.
def chance($p; $t; $what): ($p.latitude * 12.9898 + $p.longitude * 78.233 + ($t / 3600 | floor | . % 9973) * 0.317 + ($what | explode | add)) | sin * 43758.5453 | . - floor;
def imperial($p; f; $digits): if $p.units == "imperial" then f else . end | rounded($digits);
def degrees($p): imperial($p; . * 9 / 5 + 32; 1);
def speed($p): imperial($p; . / 1.609344; 1);
def depth($p): imperial($p; . / 25.4; 2);
# In °C: the season and the hour at the place, and some chance of the day.
def temperature($p; $t): (atan2(0; -1) * 2) as $round | ($p.latitude | fabs) as $north
  | (($t | strftime("%j") | tonumber) - 200) / 365 * $round | cos | if $p.latitude < 0 then -. else . end
  | 28 - $north * 0.45 + . * $north * 0.25 + 4 * ((($t / 3600 | floor) % 24 + $p.longitude / 15 - 15) / 24 * $round | cos)
    + 6 * (chance($p; $t - $t % 86400; "day") - 0.5);
# In mm within the hour; most hours have none.
def rain($p; $t): chance($p; $t - $t % 86400; "rain") as $wet
  | if $wet < 0.55 or chance($p; $t; "rain") < 0.6 then 0 else 4 * ($wet - 0.5) * chance($p; $t; "amount") end;
def sky($celsius; $rain; $clouds): if $rain > 0 and $celsius < 0.5 then "snow" elif $rain > 0.8 then "heavy rain" elif $rain > 0 then "light rain"
  elif $clouds > 75 then "overcast" elif $clouds > 30 then "partly cloudy" else "clear sky" end;
def hour($p; $t): rain($p; $t) as $rain | temperature($p; $t) as $celsius
  | (chance($p; $t - $t % 21600; "clouds") * 100 | floor | if $rain > 0 then [., 70] | max else . end) as $clouds
  | {time: ($t | strftime("%Y-%m-%dT%H:%M")), temperature: ($celsius | degrees($p)), humidity: (35 + 60 * chance($p; $t - $t % 10800; "humidity") | floor),
     precipitation: ($rain | depth($p)), wind_speed: (4 + 30 * chance($p; $t - $t % 10800; "wind") | speed($p)),
     wind_direction: (360 * chance($p; $t - $t % 43200; "direction") | floor), cloud_cover: $clouds, description: sky($celsius; $rain; $clouds)};
def day($p; $t): [range(24) | hour($p; $t + . * 3600)] as $h | ($h | map(.precipitation) | add) as $rain | ($h | map(.cloud_cover) | add / 24) as $clouds
  | {date: ($t | strftime("%Y-%m-%d")), temperature_min: ($h | map(.temperature) | min), temperature_max: ($h | map(.temperature) | max),
     precipitation: ($rain | rounded(2)), precipitation_probability: ([95, ($h | map(select(.precipitation > 0)) | length * 6)] | min),
     wind_speed_max: ($h | map(.wind_speed) | max), sunshine_hours: (12 - $clouds * 0.12 | rounded(1)),
     description: sky(temperature($p; $t + 43200); $rain / 12; $clouds)};
def midnight: . // "2026-01-15" | . as $date | try ("\(.)T00:00:00Z" | fromdate) catch error("\($date | tojson) is not a date such as 2026-01-15");
def where: {location: ($a | {latitude, longitude}), units: $a.units};

def current_weather: hour($a; now) as $h | where + {current: $h, apparent_temperature: ($h.temperature - $h.wind_speed / 12 | rounded(1)),
  pressure_hpa: (990 + 40 * chance($a; now; "pressure") | rounded(1))};
def forecast: ($a.start_date | midnight) as $first
  | where + if $a.granularity == "hourly" then {hourly: [range($a.days * 24) | hour($a; $first + . * 3600)]} else {daily: [range($a.days) | day($a; $first + . * 86400)]} end;
def climate: [$a.months // [range(1; 13)] | .[] | ("2025-\(100 + . | tostring[1:])-15T00:00:00Z" | fromdate) as $t
  | temperature($a; $t + ((15 - $a.longitude / 15) * 3600 | floor)) as $noon | chance($a; $t; "wet") as $wet
  | {month: ($t | strftime("%B")), mean_high: ($noon | degrees($a)), mean_low: ($noon - 8 | degrees($a)), precipitation: (10 + 120 * $wet | depth($a)),
     rainy_days: (2 + 16 * $wet | floor), sunshine_hours: (4 + 7 * (1 - $wet) | rounded(1))}];
def compare_weather: ($a.date | midnight) as $t | [$a.places[] | {name} + day(. + {units: $a.units}; $t)];
