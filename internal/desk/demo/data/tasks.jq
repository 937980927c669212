# The tasks, the last id of a comment and the time, which moves with every change.
def init: {tasks: ., clock: now, last: ([.[].comments[].id] | max),
  team: [.[].author] | unique | map({(.login): .}) | add, milestones: [.[].milestone | values] | unique | map({(.title): .}) | add};

def rank: {low: 0, normal: 1, high: 2, urgent: 3}[.];
def task: one(.tasks[] | select(.number == $a.number); "no task with number \($a.number)");
def text: [.title, .body, .comments[].body] | join("\n");
# The task with the fields that were given.
def given($board): . + ($a | del(.number)) + {updated_at: ($board.clock | todate)}
  | if $a | has("assignee") then .assignee = if $a.assignee then $board.team[$a.assignee] // error("nobody has the login \($a.assignee | tojson)") else null end else . end
  | if $a.milestone then .milestone = $board.milestones[$a.milestone] else . end
  | .closed_at = if .state == "closed" then .closed_at // .updated_at else null end;
def put($task): {state: (.tasks[$task.number - 1] = $task), result: $task};

def list_tasks: ($a.filter // {}) as $f | .tasks
  | map(select(($f.state == null or (.state | IN($f.state[]))) and (($f.labels // []) - .labels == [])
    and ($f.assignee == null or .assignee.login == $f.assignee) and ($f.milestone == null or .milestone.title == $f.milestone)
    and (.priority | rank) >= ($f.min_priority // "low" | rank)))
  | sort_by({priority: (.priority | rank), updated: .updated_at}[$a.sort.by // "number"] // .number)
  | if $a.sort.order == "desc" then reverse else . end | {total: length, tasks: .[:$a.limit]};
def get_task: task;
def create_task: .clock += 60 | . as $board | {number: (.tasks | length + 1), title: "", body: "", state: "open", priority: "normal", labels: [],
  author: .team.ana, assignee: null, milestone: null, estimate_hours: 0, comments: [], created_at: (.clock | todate), closed_at: null} as $new
  | put($new | given($board));
def update_task: .clock += 60 | . as $board | put(task | given($board));
def comment_task: .clock += 60 | .last += 1 | {id: .last, author: $a.author, body: $a.body, created_at: (.clock | todate)} as $comment
  | put(task | .comments += [$comment] | .updated_at = $comment.created_at) | .result = $comment;
def delete_comment: put(task | one(select(any(.comments[]; .id == $a.comment_id)); "task \($a.number) has no comment \($a.comment_id)")
  | .comments |= map(select(.id != $a.comment_id))) | .result = "Deleted comment \($a.comment_id) of task \($a.number).";
def search_tasks: .tasks | map(select($a.state == null or .state == $a.state) | {number, title, state, matches: (text | occurrences($a.query))} | select(.matches > 0))
  | sort_by(-.matches) | .[:$a.limit];
def board_report: def tally(f): map(select(f)) | group_by(f) | map({name: (.[0] | f), tasks: length, hours_left: (map(select(.state != "closed").estimate_hours) | add // 0)})
    | sort_by(-.tasks);
  .tasks | map(select($a.milestone == null or .milestone.title == $a.milestone))
  | {total: length, by_state: tally(.state), by_priority: tally(.priority), by_assignee: tally(.assignee.login), by_milestone: tally(.milestone.title),
     unassigned: map(select(.assignee == null) | {number, title, state})};
