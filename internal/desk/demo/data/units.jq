# The units: base = (value + offset) * factor. The first of a quantity is its base.
def unit($symbol): one(.[] | select(.symbol == $symbol); "unknown unit \($symbol | tojson); list_units has the symbols");
def digits: "0123456789abcdefghijklmnopqrstuvwxyz";

def convert_unit: unit($a.from) as $from | unit($a.to) as $to
  | if $from.quantity != $to.quantity then error("\($a.from) is a unit of \($from.quantity), \($a.to) of \($to.quantity)") else . end
  | {value: $a.value, from: $a.from, to: $a.to, quantity: $from.quantity,
     result: (($a.value + $from.offset) * $from.factor / $to.factor - $to.offset | rounded($a.precision))};
def list_units: [.[] | select($a.quantity == null or .quantity == $a.quantity)
  | {quantity, symbol, name, base: (.factor == 1 and .offset == 0)}];
def convert_base: ($a.number | ascii_downcase | gsub("_"; "") | capture("^(?<sign>[+-]?)(?<mark>0[xob])?(?<digits>.*)$")) as $n
  | ($n.mark == {"16": "0x", "8": "0o", "2": "0b"}["\($a.from_base)"]) as $marked
  | (if $marked then $n.digits else ($n.mark // "") + $n.digits end) as $text
  | ($text | explode | map(. as $c | digits | explode | index($c))) as $values
  | if $text == "" or any($values[]; . >= $a.from_base) then error("\($a.number | tojson) is not an integer in base \($a.from_base)") else . end
  | reduce $values[] as $v (0; . * $a.from_base + $v) as $value
  | def spell($base): if . == 0 then "0" else [while(. > 0; (. - . % $base) / $base) | . % $base | . as $d | digits[$d:$d + 1]] | reverse | add end;
  {input: $a.number, from_base: $a.from_base, to_base: $a.to_base,
   result: (if $n.sign == "-" and $value > 0 then "-" else "" end + ($value | spell($a.to_base))), bits: ($value | if . == 0 then 0 else spell(2) | length end)};
def convert_time: def offset: (if .[:1] == "-" then -1 else 1 end) * (.[1:3] | tonumber * 60) + (if .[:1] == "-" then -1 else 1 end) * (.[4:6] | tonumber);
  ($a.time | if type == "number" then floor else
    (capture("^(?<clock>\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d)(\\.\\d+)?(?<zone>Z|[+-]\\d\\d:\\d\\d)$") // error("\(tojson) is not a time such as 2026-01-15T09:00:00Z"))
    | ("\(.clock)Z" | fromdate) - (if .zone == "Z" then 0 else .zone | offset * 60 end) end) as $unix
  | ($a.offset_minutes | fabs) as $off | ($unix + $a.offset_minutes * 60)
  | {unix: $unix, weekday: strftime("%A"), day_of_year: (strftime("%j") | tonumber), iso_week: strftime("%G-W%V"),
     iso: (strftime("%Y-%m-%dT%H:%M:%S") + if $off == 0 then "Z" else
       (if $a.offset_minutes < 0 then "-" else "+" end) + ([$off / 60 | floor, $off % 60 | 100 + . | tostring[1:]] | join(":")) end)};
