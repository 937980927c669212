package demo

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// optional is a string argument that may be left out, null or given.
type optional struct {
	given bool
	text  string // empty for null
}

// UnmarshalJSON notes that the argument was given.
func (o *optional) UnmarshalJSON(data []byte) error {
	o.given = true
	if string(data) == "null" {
		return nil
	}
	return json.Unmarshal(data, &o.text)
}

type taskSearchArgs struct {
	Query, State string
	Limit        int
}

type taskHit struct {
	Number  int    `json:"number"`
	Title   string `json:"title"`
	State   string `json:"state"`
	Matches int    `json:"matches"`
}

func (b *board) search(a taskSearchArgs) (any, error) {
	words := strings.Fields(strings.ToLower(a.Query))
	if len(words) == 0 {
		return nil, errors.New("query must not be empty")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	hits := []taskHit{}
	for _, t := range b.tasks {
		if a.State != "" && t.State != a.State {
			continue
		}
		if n := t.matches(words); n > 0 {
			hits = append(hits, taskHit{t.Number, t.Title, t.State, n})
		}
	}
	slices.SortStableFunc(hits, func(x, y taskHit) int { return cmp.Compare(y.Matches, x.Matches) })
	return hits[:min(len(hits), max(orDefault(a.Limit, 10), 0))], nil
}

// matches counts the words in the texts of t; 0 if one is missing.
func (t *task) matches(words []string) int {
	text := t.Title + "\n" + t.Body
	for _, c := range t.Comments {
		text += "\n" + c.Body
	}
	text = strings.ToLower(text)
	total := 0
	for _, w := range words {
		n := strings.Count(text, w)
		if n == 0 {
			return 0
		}
		total += n
	}
	return total
}

type reportArgs struct{ Milestone string }

// tally is a row of the report: how many tasks, and the hours of those not closed.
type tally struct {
	Name  string  `json:"name"`
	Tasks int     `json:"tasks"`
	Hours float64 `json:"hours_left"`
}

type report struct {
	Total       int       `json:"total"`
	ByState     []tally   `json:"by_state"`
	ByPriority  []tally   `json:"by_priority"`
	ByAssignee  []tally   `json:"by_assignee"`
	ByMilestone []tally   `json:"by_milestone"`
	Unassigned  []taskHit `json:"unassigned"`
}

func (b *board) report(a reportArgs) (any, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := report{ByState: []tally{}, ByPriority: []tally{}, ByAssignee: []tally{}, ByMilestone: []tally{}, Unassigned: []taskHit{}}
	for _, t := range b.tasks {
		if !(boardFilter{Milestone: a.Milestone}).keeps(t) {
			continue
		}
		hours := t.Estimate
		if t.State == "closed" {
			hours = 0
		}
		r.Total++
		r.ByState = count(r.ByState, t.State, hours)
		r.ByPriority = count(r.ByPriority, t.Priority, hours)
		if t.Milestone != nil {
			r.ByMilestone = count(r.ByMilestone, t.Milestone.Title, hours)
		}
		if t.Assignee != nil {
			r.ByAssignee = count(r.ByAssignee, t.Assignee.Login, hours)
		} else {
			r.Unassigned = append(r.Unassigned, taskHit{t.Number, t.Title, t.State, 0})
		}
	}
	for _, rows := range [][]tally{r.ByState, r.ByPriority, r.ByAssignee, r.ByMilestone} {
		slices.SortFunc(rows, func(x, y tally) int { return cmp.Or(cmp.Compare(y.Tasks, x.Tasks), cmp.Compare(x.Name, y.Name)) })
	}
	return r, nil
}

func count(rows []tally, name string, hours float64) []tally {
	i := slices.IndexFunc(rows, func(r tally) bool { return r.Name == name })
	if i < 0 {
		return append(rows, tally{name, 1, hours})
	}
	rows[i].Tasks++
	rows[i].Hours += hours
	return rows
}
