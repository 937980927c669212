# What the filters of all servers may use. $a is the arguments of the call, with
# the defaults of the schema. A tool NAME is the function NAME: its input is the
# server's state, its output the result. A tool that is not read-only gives
# {state, result}. init makes the state of what NAME.json holds.
def init: .;
def now: 1768467600; # when the demo takes place, 2026-01-15T09:00:00Z
def rounded($digits): if fabs > 1e15 then . else pow(10; $digits) as $p | . * $p | round / $p end;
def one(f; $fault): [f] | if length > 0 then .[0] else error($fault) end;
# How often the words of $query occur in the text, in any case; 0 if one is missing.
def occurrences($query): ascii_downcase as $text
  | [$query | ascii_downcase | splits(" +") | select(. != "") as $word | $text | indices($word) | length]
  | if all(. > 0) then add // 0 else 0 end;
