# The notes, the last id that was given and the time, which moves with every change.
def init: {notes: ., last: length, clock: now};

def row: {id, title, tags: (.tags | join(" ")), pinned, length: (.body | length), updated_at};
def sorted($by): .notes | sort_by(.id) | sort_by(.[{title: "title", created: "created_at"}[$by] // "updated_at"])
  | if $by == "title" then . else reverse end | map(select(.pinned)) + map(select(.pinned | not));
def normal: map(ascii_downcase) | unique;
def note: one(.notes[] | select(.id == $a.id); "no note with id \($a.id)");
def changed(f): note as $old | .clock += 60 | .clock as $clock | ($old | f | .updated_at = ($clock | todate)) as $new
  | {state: (.notes |= map(if .id == $a.id then $new else . end)), result: $new};

def create_note: .last += 1 | .clock += 60 | (.clock | todate) as $time
  | {id: .last, title: $a.title, body: $a.body, tags: ($a.tags // [] | normal), pinned: $a.pinned, created_at: $time, updated_at: $time} as $note
  | {state: (.notes += [$note]), result: $note};
def list_notes: sorted($a.sort) | map(select($a.tag == null or any(.tags[]; . == ($a.tag | ascii_downcase))) | row) | .[:$a.limit];
def read_note: note | "# \(.title)\n\n\(.body)" + if .tags == [] then "" else "\n\nTags: \(.tags | join(", "))" end;
def search_notes: sorted("updated") | map({id, title, body, fields: {title, tags: (.tags | join(" ")), body}}
  | .score = ([.fields[$a.in // ["title", "body", "tags"] | .[]]] | join("\n") | occurrences($a.query)) | select(.score > 0)
  | .snippet = ([.body | splits("\n")] as $lines | first($lines[] | select(occurrences([$a.query | splits(" +")][0]) > 0)) // $lines[0]) | {id, title, score, snippet})
  | sort_by(-.score) | .[:$a.limit];
def update_note: changed(. + ($a | del(.mode)) + if $a.body and $a.mode == "append" then {body: "\(.body)\n\($a.body)"} else {} end);
def delete_note: note as $note | {state: del(.notes[] | select(.id == $a.id)), result: "Deleted note \($note.id) (\($note.title))."};
def tag_note: changed(.tags |= ((. + ($a.add // []) | normal) - ($a.remove // [] | normal))) | .result |= row;
def list_tags: [.notes[].tags[]] | group_by(.) | map({tag: .[0], notes: length}) | sort_by(-.notes);
