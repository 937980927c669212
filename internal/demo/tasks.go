package demo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/server"
)

type user struct {
	Login string `json:"login"`
	Name  string `json:"name"`
	Role  string `json:"role"`
}

type milestone struct {
	Title string `json:"title"`
	Due   string `json:"due_on"`
}

type comment struct {
	ID      int       `json:"id"`
	Author  string    `json:"author"`
	Body    string    `json:"body"`
	Created time.Time `json:"created_at"`
}

type task struct {
	Number    int        `json:"number"`
	Title     string     `json:"title"`
	Body      string     `json:"body"`
	State     string     `json:"state"`
	Priority  string     `json:"priority"`
	Labels    []string   `json:"labels"`
	Author    user       `json:"author"`
	Assignee  *user      `json:"assignee"`
	Milestone *milestone `json:"milestone"`
	Estimate  float64    `json:"estimate_hours"`
	Comments  []comment  `json:"comments"`
	Created   time.Time  `json:"created_at"`
	Updated   time.Time  `json:"updated_at"`
	Closed    *time.Time `json:"closed_at"`
}

var (
	team = []user{
		{"ana", "Ana Ferreira", "maintainer"}, {"luis", "Luis Ortega", "developer"}, {"mei", "Mei Tanaka", "developer"},
		{"omar", "Omar Haddad", "tester"}, {"ruth", "Ruth Okafor", "writer"},
	}
	milestones = []milestone{{"1.8", "2026-01-20"}, {"1.9", "2026-03-03"}, {"2.0", "2026-06-30"}}
	states     = []string{"open", "in_progress", "review", "closed"}
	priorities = []string{"low", "normal", "high", "urgent"}
)

// board is the issue board. Its clock moves a minute with every change.
type board struct {
	mu      sync.Mutex
	tasks   []*task   // by number, from 1; guarded by mu
	comment int       // the last id; guarded by mu
	clock   time.Time // guarded by mu
}

func newTasks() *board {
	b := &board{clock: start.AddDate(0, 0, -40), comment: 4000}
	for i, s := range []struct{ title, labels, body string }{
		{"Importer drops the last line without a line end", "bug importer", "A CSV file whose last line has no line end loses that line. Seen with files from the old exporter."},
		{"Dark mode for the settings page", "feature ui", "The settings page ignores the system's colour scheme."},
		{"Document the retry policy", "docs", "Nobody knows how often and how long we retry."},
		{"Time out after 30 s instead of hanging", "bug network", "A server that accepts the connection and says nothing keeps the worker busy for ever."},
		{"Speed up the start with many plugins", "performance", "Start takes 4.1 s with 60 plugins; 3.2 s of it is reading manifests one after another."},
		{"Export to Parquet", "feature exporter", "Asked for by three customers. Columns with mixed types need a decision."},
		{"Alert before certificates expire", "ops", "21 days ahead, to the on-call channel. Follows from the incident of 8 January."},
		{"Search finds nothing for Japanese titles", "bug search", "The tokenizer splits on spaces only."},
		{"Remove the deprecated v1 endpoints", "cleanup api", "Announced for 2.0. Two clients still call /v1/items."},
		{"Keyboard shortcuts in the board view", "feature ui", "j and k to move, o to open, c to comment."},
		{"Race in the cache invalidation", "bug concurrency", "Two invalidations within a millisecond leave the older entry."},
		{"Migration guide for 2.0", "docs", "What changes, what breaks, how to test it beforehand."},
		{"Show the reason when an upload is refused", "ui", "The dialog says only 'refused'."},
		{"Reduce the size of the container image", "ops performance", "1.2 GB, of which 800 MB are build tools."},
		{"Wrong totals when a currency is missing", "bug billing", "Rows without a currency count as zero; they must be an error."},
		{"Let administrators rename workspaces", "feature admin", "The name occurs in URLs: old ones must redirect."},
		{"Flaky test TestSchedulerOrder", "bug tests", "Fails once in 200 runs on the small runners."},
		{"Rate limit per API key", "feature api", "Token bucket, 20 requests a second, burst 60. Answer with 429 and Retry-After."},
		{"Translate the mail templates into Portuguese", "docs i18n", "14 templates."},
		{"Audit log for permission changes", "feature security", "Who gave what to whom, when, from where."},
		{"Upgrade to the new TLS library", "security cleanup", "The old one is out of support in June."},
		{"Graph of the queue length on the status page", "feature ops", "Last 24 hours, one point a minute."},
	} {
		t := &task{
			Number: i + 1, Title: s.title, Body: s.body, Labels: strings.Fields(s.labels), Comments: []comment{},
			State: states[(i*7+1)%len(states)], Priority: priorities[(i*5+2)%len(priorities)],
			Author: team[(i*3)%len(team)], Estimate: float64((i*11)%32) / 2, Created: b.clock,
		}
		if i%4 != 3 {
			t.Assignee = &team[(i+1)%len(team)]
		}
		if i%3 != 2 {
			t.Milestone = &milestones[i%len(milestones)]
		}
		b.clock = b.clock.Add(29 * time.Hour)
		t.Updated = b.clock
		for c := range i % 4 {
			b.comment++
			said := []string{"I can reproduce this on main.", "Would it be enough to do the first half for now?", "Done in my branch, please review."}[c]
			t.Comments = append(t.Comments, comment{b.comment, team[(i+c)%len(team)].Login, said, b.clock.Add(time.Duration(c) * time.Hour)})
		}
		if t.State == "closed" {
			closed := t.Updated
			t.Closed = &closed
		}
		b.tasks = append(b.tasks, t)
	}
	b.clock = start
	return b
}

const (
	numberSchema   = `"number": {"type": "integer", "description": "Number of the task", "minimum": 1}`
	stateEnum      = `"enum": ["open", "in_progress", "review", "closed"]`
	priorityEnum   = `"enum": ["low", "normal", "high", "urgent"]`
	assigneeEnum   = `"enum": ["ana", "luis", "mei", "omar", "ruth"]`
	milestoneEnum  = `"enum": ["1.8", "1.9", "2.0"]`
	taskFieldsText = `
		"body": {"type": "string", "description": "Description in Markdown", "maxLength": 20000},
		"priority": {"type": "string", "description": "How soon it has to be done", ` + priorityEnum + `, "default": "normal"},
		"labels": {"type": "array", "description": "Labels, for example bug or docs", "items": {"type": "string"}, "maxItems": 10, "uniqueItems": true},
		"assignee": {"type": ["string", "null"], "description": "Login of the person who does it; null for nobody"},
		"milestone": {"type": "string", "description": "Title of the milestone", ` + milestoneEnum + `},
		"estimate_hours": {"type": "number", "description": "Estimated effort in hours", "minimum": 0, "maximum": 400}`
)

func (b *board) tools() []server.ServerTool {
	return []server.ServerTool{
		tool("list_tasks", "List tasks", readOnly,
			`List tasks on the board with their labels, assignee, milestone and comments, filtered and sorted. Conditions are combined with AND; several labels must all be there.`,
			`{"type": "object", "properties": {
				"filter": {"type": "object", "description": "Conditions; all tasks when left out", "properties": {
					"state": {"type": "array", "description": "Any of these states", "items": {"type": "string", `+stateEnum+`}, "minItems": 1},
					"labels": {"type": "array", "description": "All of these labels", "items": {"type": "string"}},
					"assignee": {"type": "string", "description": "Login of the assignee", `+assigneeEnum+`},
					"milestone": {"type": "string", "description": "Title of the milestone", `+milestoneEnum+`},
					"min_priority": {"type": "string", "description": "This priority or a higher one", `+priorityEnum+`}
				}, "additionalProperties": false},
				"sort": {"type": "object", "description": "Order of the result", "properties": {
					"by": {"type": "string", "enum": ["number", "priority", "updated"], "default": "number"},
					"order": {"type": "string", "enum": ["asc", "desc"], "default": "asc"}
				}, "additionalProperties": false},
				"limit": {"type": "integer", "description": "Maximum number of tasks to return", "minimum": 1, "maximum": 100, "default": 30}
			}, "additionalProperties": false}`, b.list),
		tool("get_task", "Get a task", readOnly,
			`Get one task with its description, people, milestone and all comments.`,
			`{"type": "object", "properties": {`+numberSchema+`}, "required": ["number"], "additionalProperties": false}`, b.get),
		tool("create_task", "Create a task", adds,
			`Create a task in the state open and return it. The author is ana.`,
			`{"type": "object", "properties": {
				"title": {"type": "string", "description": "Title, one line", "minLength": 1, "maxLength": 200},`+taskFieldsText+`
			}, "required": ["title"], "additionalProperties": false}`, b.create),
		tool("update_task", "Update a task", changes,
			`Change fields of a task. Fields that are left out stay as they are; labels replace the old ones. Setting the state to closed sets closed_at, any other state clears it.`,
			`{"type": "object", "properties": {`+numberSchema+`,
				"title": {"type": "string", "description": "New title", "minLength": 1, "maxLength": 200},
				"state": {"type": "string", "description": "New state", `+stateEnum+`},`+taskFieldsText+`
			}, "required": ["number"], "additionalProperties": false}`, b.update),
		tool("comment_task", "Comment on a task", adds,
			`Add a comment to a task. Returns the comment with its ID.`,
			`{"type": "object", "properties": {`+numberSchema+`,
				"body": {"type": "string", "description": "Text of the comment in Markdown", "minLength": 1, "maxLength": 20000},
				"author": {"type": "string", "description": "Login of the author", `+assigneeEnum+`, "default": "ana"}
			}, "required": ["number", "body"], "additionalProperties": false}`, b.say),
		tool("search_tasks", "Search tasks", readOnly,
			`Full-text search over titles, descriptions and comments of all tasks. All words must occur, in any order; case does not matter.`,
			`{"type": "object", "properties": {
				"query": {"type": "string", "description": "Words to search for", "minLength": 1},
				"state": {"type": "string", "description": "Only tasks in this state", `+stateEnum+`},
				"limit": {"type": "integer", "description": "Maximum number of results", "minimum": 1, "maximum": 50, "default": 10}
			}, "required": ["query"], "additionalProperties": false}`, b.search),
		tool("delete_comment", "Delete a comment", destroys,
			`Delete a comment of a task for good. This cannot be undone.`,
			`{"type": "object", "properties": {`+numberSchema+`,
				"comment_id": {"type": "integer", "description": "ID of the comment", "minimum": 1}
			}, "required": ["number", "comment_id"], "additionalProperties": false}`, b.unsay),
		tool("board_report", "Report on the board", readOnly,
			`Summarise the board: tasks by state and priority, hours of work left by person and by milestone, and the tasks that nobody has.`,
			`{"type": "object", "properties": {
				"milestone": {"type": "string", "description": "Only this milestone", `+milestoneEnum+`}
			}, "additionalProperties": false}`, b.report),
	}
}

type boardFilter struct {
	State, Labels       []string
	Assignee, Milestone string
	MinPriority         string `json:"min_priority"`
}

func (f boardFilter) keeps(t *task) bool {
	if len(f.State) > 0 && !slices.Contains(f.State, t.State) {
		return false
	}
	for _, l := range f.Labels {
		if !slices.Contains(t.Labels, l) {
			return false
		}
	}
	return (f.Assignee == "" || t.Assignee != nil && t.Assignee.Login == f.Assignee) &&
		(f.Milestone == "" || t.Milestone != nil && t.Milestone.Title == f.Milestone) &&
		slices.Index(priorities, t.Priority) >= slices.Index(priorities, f.MinPriority)
}

type boardArgs struct {
	Filter boardFilter
	Sort   struct{ By, Order string }
	Limit  int
}

func (b *board) list(a boardArgs) (any, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rows := []task{}
	for _, t := range b.tasks {
		if a.Filter.keeps(t) {
			rows = append(rows, t.copy())
		}
	}
	slices.SortStableFunc(rows, func(x, y task) int {
		switch a.Sort.By {
		case "priority":
			return cmp.Compare(slices.Index(priorities, x.Priority), slices.Index(priorities, y.Priority))
		case "updated":
			return x.Updated.Compare(y.Updated)
		}
		return cmp.Compare(x.Number, y.Number)
	})
	if a.Sort.Order == "desc" {
		slices.Reverse(rows)
	}
	return map[string]any{"total": len(rows), "tasks": rows[:min(len(rows), max(orDefault(a.Limit, 30), 0))]}, nil
}

// copy is t for use without the lock.
func (t *task) copy() task {
	c := *t
	c.Labels, c.Comments = slices.Clone(t.Labels), slices.Clone(t.Comments)
	return c
}

type numberArgs struct{ Number int }

// find must be called with mu held.
func (b *board) find(number int) (*task, error) {
	if number < 1 || number > len(b.tasks) {
		return nil, fmt.Errorf("no task with number %d", number)
	}
	return b.tasks[number-1], nil
}

func (b *board) get(a numberArgs) (any, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, err := b.find(a.Number)
	if err != nil {
		return nil, err
	}
	return t.copy(), nil
}

type taskArgs struct {
	Number                       int
	Title, Body, State, Priority *string
	Labels                       []string
	Assignee                     optional
	Milestone                    *string
	Estimate                     *float64 `json:"estimate_hours"`
}

// apply changes t as a says, or not at all. It must be called with mu held.
func (b *board) apply(t *task, a taskArgs) error {
	c := t.copy()
	for _, f := range []struct{ to, from *string }{{&c.Title, a.Title}, {&c.Body, a.Body}, {&c.State, a.State}, {&c.Priority, a.Priority}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	if c.Title == "" {
		return errors.New("title must not be empty")
	}
	if a.Labels != nil {
		c.Labels = a.Labels
	}
	if a.Assignee.given {
		i := slices.IndexFunc(team, func(u user) bool { return u.Login == a.Assignee.text })
		switch {
		case a.Assignee.text == "":
			c.Assignee = nil
		case i < 0:
			return fmt.Errorf("nobody has the login %q", a.Assignee.text)
		default:
			c.Assignee = &team[i]
		}
	}
	if a.Milestone != nil {
		i := slices.IndexFunc(milestones, func(m milestone) bool { return m.Title == *a.Milestone })
		if i < 0 {
			return fmt.Errorf("no milestone %q", *a.Milestone)
		}
		c.Milestone = &milestones[i]
	}
	if a.Estimate != nil {
		c.Estimate = *a.Estimate
	}
	b.clock = b.clock.Add(time.Minute)
	c.Updated = b.clock
	if c.State != "closed" {
		c.Closed = nil
	} else if c.Closed == nil {
		c.Closed = new(b.clock)
	}
	*t = c
	return nil
}

func (b *board) create(a taskArgs) (any, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := &task{
		Number: len(b.tasks) + 1, State: "open", Priority: "normal", Author: team[0],
		Labels: []string{}, Comments: []comment{}, Created: b.clock.Add(time.Minute),
	}
	a.State = nil
	if err := b.apply(t, a); err != nil {
		return nil, err
	}
	b.tasks = append(b.tasks, t)
	return t.copy(), nil
}

func (b *board) update(a taskArgs) (any, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, err := b.find(a.Number)
	if err != nil {
		return nil, err
	}
	if err := b.apply(t, a); err != nil {
		return nil, err
	}
	return t.copy(), nil
}

type sayArgs struct {
	Number       int
	Body, Author string
}

func (b *board) say(a sayArgs) (any, error) {
	if a.Body == "" {
		return nil, errors.New("body must not be empty")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	t, err := b.find(a.Number)
	if err != nil {
		return nil, err
	}
	b.comment++
	b.clock = b.clock.Add(time.Minute)
	c := comment{b.comment, orDefault(a.Author, "ana"), a.Body, b.clock}
	t.Comments = append(t.Comments, c)
	t.Updated = b.clock
	return c, nil
}

type unsayArgs struct {
	Number    int
	CommentID int `json:"comment_id"`
}

func (b *board) unsay(a unsayArgs) (any, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, err := b.find(a.Number)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(t.Comments, func(c comment) bool { return c.ID == a.CommentID })
	if i < 0 {
		return nil, fmt.Errorf("task %d has no comment %d", a.Number, a.CommentID)
	}
	t.Comments = slices.Delete(t.Comments, i, i+1)
	return fmt.Sprintf("Deleted comment %d of task %d.", a.CommentID, a.Number), nil
}
