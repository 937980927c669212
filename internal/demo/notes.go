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

type note struct {
	ID      int       `json:"id"`
	Title   string    `json:"title"`
	Body    string    `json:"body"`
	Tags    []string  `json:"tags"`
	Pinned  bool      `json:"pinned"`
	Created time.Time `json:"created_at"`
	Updated time.Time `json:"updated_at"`
}

// summary is a note in a list.
type summary struct {
	ID      int       `json:"id"`
	Title   string    `json:"title"`
	Tags    string    `json:"tags"`
	Pinned  bool      `json:"pinned"`
	Length  int       `json:"length"`
	Updated time.Time `json:"updated_at"`
}

func (n *note) summary() summary {
	return summary{n.ID, n.Title, strings.Join(n.Tags, " "), n.Pinned, len(n.Body), n.Updated}
}

// notes is the notebook. Its clock moves a minute with every change.
type notes struct {
	mu    sync.Mutex
	byID  map[int]*note // guarded by mu
	last  int           // guarded by mu
	clock time.Time     // guarded by mu
}

func newNotes() *notes {
	n := &notes{byID: map[int]*note{}, clock: start.AddDate(0, 0, -14)}
	for _, s := range []struct{ title, tags, body string }{
		{"Team meeting, Monday", "work meeting", "## Decisions\n\n- Ship the importer on the 20th\n- Ana takes over the release notes\n- No meeting next week\n\n## Open\n\nWho writes the migration guide?"},
		{"Bread that works", "kitchen recipe", "500 g flour, 350 g water, 10 g salt, 3 g dry yeast.\n\nMix, wait 12 hours, fold, wait 1 hour, bake 40 minutes at 240 °C in a closed pot."},
		{"Trip to Lisbon", "travel", "- Flight TP 555, 11:40\n- Hotel near Rossio, check-in from 15:00\n- Tram 28 early in the morning\n- Book the Oceanário"},
		{"Books to read", "reading list", "- The Art of Doing Science and Engineering\n- A Pattern Language\n- Seeing Like a State"},
		{"Ideas for the talk", "work talk", "Start with the failure, not with the architecture. Three figures at most. End with what we would not do again."},
		{"Bicycle maintenance", "home", "Chain: every 300 km. Brake pads checked in January. Tyre pressure 4.5 bar front, 5 bar back."},
		{"Interview questions", "work hiring", "1. Tell me about a bug that took more than a week.\n2. What did you delete last?\n3. When did you last change your mind?"},
		{"Garden plan", "home garden", "March: peas, broad beans. April: potatoes, carrots. May, after the frosts: tomatoes, beans, courgettes."},
		{"Standing order for coffee", "kitchen", "Two kilograms of the Guatemala every six weeks; the next one is due on 2 February."},
		{"Incident of 8 January", "work incident", "Cause: the certificate of the internal proxy had expired.\nFound after 41 minutes.\nTo do: alert 21 days ahead (see task 7)."},
		{"Gift ideas", "family list", "Ana: the blue teapot. Luis: a map of the old harbour. Parents: a weekend in Porto."},
		{"Spanish, lesson 12", "learning", "El subjuntivo después de *cuando* si habla del futuro: *cuando llegue, te llamo*."},
	} {
		n.add(s.title, s.body, strings.Fields(s.tags))
		n.clock = n.clock.Add(19 * time.Hour)
	}
	n.byID[1].Pinned = true
	n.clock = start
	return n
}

// add must be called with mu held, or before n is shared.
func (n *notes) add(title, body string, tags []string) *note {
	n.last++
	n.clock = n.clock.Add(time.Minute)
	one := &note{ID: n.last, Title: title, Body: body, Tags: normal(tags), Created: n.clock, Updated: n.clock}
	n.byID[one.ID] = one
	return one
}

// normal is tags in lower case, sorted, each once.
func normal(tags []string) []string {
	out := make([]string, 0, len(tags))
	for _, t := range tags {
		if t = strings.ToLower(strings.TrimSpace(t)); t != "" {
			out = append(out, t)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

const noteID = `"id": {"type": "integer", "description": "ID of the note, from list_notes or search_notes", "minimum": 1}`

func (n *notes) tools() []server.ServerTool {
	return []server.ServerTool{
		tool("create_note", "Create a note", adds,
			`Create a new note in the notebook and return it with its ID. The body is Markdown. Tags are stored in lower case, without duplicates. Titles need not be unique.`,
			`{"type": "object", "properties": {
				"title": {"type": "string", "description": "Title of the note, one line", "minLength": 1, "maxLength": 200},
				"body": {"type": "string", "description": "Text of the note in Markdown", "maxLength": 20000, "default": ""},
				"tags": {"type": "array", "description": "Tags to find the note by, for example work or recipe", "items": {"type": "string", "pattern": "^\\S+$"}, "maxItems": 10},
				"pinned": {"type": "boolean", "description": "Keep the note at the top of lists", "default": false}
			}, "required": ["title"], "additionalProperties": false}`, n.create),
		tool("list_notes", "List notes", readOnly,
			`List the notes in the notebook without their text, pinned ones first, then the most recently changed. Use read_note to get the text of a note.`,
			`{"type": "object", "properties": {
				"tag": {"type": "string", "description": "Only notes that carry this tag"},
				"sort": {"type": "string", "description": "Order of the notes after the pinned ones", "enum": ["updated", "created", "title"], "default": "updated"},
				"limit": {"type": "integer", "description": "Maximum number of notes to return", "minimum": 1, "maximum": 200, "default": 50}
			}, "additionalProperties": false}`, n.list),
		tool("read_note", "Read a note", readOnly,
			`Read the complete text of one note as Markdown, with its title as a heading and its tags at the end.`,
			`{"type": "object", "properties": {`+noteID+`}, "required": ["id"], "additionalProperties": false}`, n.read),
		tool("search_notes", "Search notes", readOnly,
			`Search the titles, texts and tags of all notes. All words of the query must occur; case does not matter. Returns the matching notes with a snippet around the first match, best match first.`,
			`{"type": "object", "properties": {
				"query": {"type": "string", "description": "Words to search for, divided by spaces", "minLength": 1},
				"in": {"type": "array", "description": "Where to search; everywhere when left out", "items": {"type": "string", "enum": ["title", "body", "tags"]}, "uniqueItems": true},
				"limit": {"type": "integer", "description": "Maximum number of notes to return", "minimum": 1, "maximum": 50, "default": 10}
			}, "required": ["query"], "additionalProperties": false}`, n.search),
		tool("update_note", "Update a note", changes,
			`Change the title, the text or the pin of a note. Fields that are left out stay as they are. With mode append the text is added at the end of the note instead of replacing it.`,
			`{"type": "object", "properties": {`+noteID+`,
				"title": {"type": "string", "description": "New title", "minLength": 1, "maxLength": 200},
				"body": {"type": "string", "description": "New text, or text to append", "maxLength": 20000},
				"mode": {"type": "string", "description": "What to do with body", "enum": ["replace", "append"], "default": "replace"},
				"pinned": {"type": "boolean", "description": "Pin or unpin the note"}
			}, "required": ["id"], "additionalProperties": false}`, n.update),
		tool("delete_note", "Delete a note", destroys,
			`Delete a note for good. This cannot be undone.`,
			`{"type": "object", "properties": {`+noteID+`}, "required": ["id"], "additionalProperties": false}`, n.remove),
		tool("tag_note", "Tag a note", changes,
			`Add tags to a note and remove tags from it in one step. Adding a tag that is there and removing one that is not are no errors. Returns the note with its new tags.`,
			`{"type": "object", "properties": {`+noteID+`,
				"add": {"type": "array", "description": "Tags to add", "items": {"type": "string"}},
				"remove": {"type": "array", "description": "Tags to remove", "items": {"type": "string"}}
			}, "required": ["id"], "additionalProperties": false}`, n.tag),
		tool("list_tags", "List tags", readOnly,
			`List all tags that are in use with the number of notes that carry them, most used first.`,
			`{"type": "object", "properties": {}, "additionalProperties": false}`, n.tags),
	}
}

type createArgs struct {
	Title, Body string
	Tags        []string
	Pinned      bool
}

func (n *notes) create(a createArgs) (any, error) {
	if a.Title == "" {
		return nil, errors.New("title must not be empty")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.add(a.Title, a.Body, a.Tags)
	one.Pinned = a.Pinned
	return *one, nil
}

type listArgs struct {
	Tag, Sort string
	Limit     int
}

func (n *notes) list(a listArgs) (any, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	rows := []summary{}
	for _, one := range n.sorted(a.Sort) {
		if a.Tag == "" || slices.Contains(one.Tags, strings.ToLower(a.Tag)) {
			rows = append(rows, one.summary())
		}
	}
	return rows[:min(len(rows), max(orDefault(a.Limit, 50), 0))], nil
}

// sorted is all notes, pinned first. It must be called with mu held.
func (n *notes) sorted(by string) []*note {
	all := make([]*note, 0, len(n.byID))
	for _, one := range n.byID {
		all = append(all, one)
	}
	slices.SortFunc(all, func(x, y *note) int {
		if x.Pinned != y.Pinned {
			if x.Pinned {
				return -1
			}
			return 1
		}
		order := 0
		switch by {
		case "title":
			order = cmp.Compare(x.Title, y.Title)
		case "created":
			order = y.Created.Compare(x.Created)
		default:
			order = y.Updated.Compare(x.Updated)
		}
		return cmp.Or(order, cmp.Compare(x.ID, y.ID))
	})
	return all
}

type idArgs struct{ ID int }

// find must be called with mu held.
func (n *notes) find(id int) (*note, error) {
	one := n.byID[id]
	if one == nil {
		return nil, fmt.Errorf("no note with id %d", id)
	}
	return one, nil
}

func (n *notes) read(a idArgs) (any, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one, err := n.find(a.ID)
	if err != nil {
		return nil, err
	}
	text := "# " + one.Title + "\n\n" + one.Body
	if len(one.Tags) > 0 {
		text += "\n\nTags: " + strings.Join(one.Tags, ", ")
	}
	return text, nil
}

type findArgs struct {
	Query string
	In    []string
	Limit int
}

type hit struct {
	ID      int    `json:"id"`
	Title   string `json:"title"`
	Score   int    `json:"score"`
	Snippet string `json:"snippet"`
}

func (n *notes) search(a findArgs) (any, error) {
	words := strings.Fields(strings.ToLower(a.Query))
	if len(words) == 0 {
		return nil, errors.New("query must not be empty")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	hits := []hit{}
	for _, one := range n.sorted("updated") {
		if score := one.score(words, a.In); score > 0 {
			hits = append(hits, hit{one.ID, one.Title, score, snippet(one.Body, words[0])})
		}
	}
	slices.SortStableFunc(hits, func(x, y hit) int { return cmp.Compare(y.Score, x.Score) })
	return hits[:min(len(hits), max(orDefault(a.Limit, 10), 0))], nil
}

// score counts the words in the fields, titles threefold; 0 if one is missing.
func (n *note) score(words, fields []string) int {
	weights := map[string]int{"title": 3, "tags": 2, "body": 1}
	texts := map[string]string{"title": n.Title, "tags": strings.Join(n.Tags, " "), "body": n.Body}
	total := 0
	for _, word := range words {
		here := 0
		for field, weight := range weights {
			if len(fields) == 0 || slices.Contains(fields, field) {
				here += weight * strings.Count(strings.ToLower(texts[field]), word)
			}
		}
		if here == 0 {
			return 0
		}
		total += here
	}
	return total
}

// snippet is the line of text that has word, else the first.
func snippet(text, word string) string {
	first, _, _ := strings.Cut(text, "\n")
	for line := range strings.Lines(text) {
		if strings.Contains(strings.ToLower(line), word) {
			return strings.TrimSpace(line)
		}
	}
	return first
}

type updateArgs struct {
	ID     int
	Title  *string
	Body   *string
	Mode   string
	Pinned *bool
}

func (n *notes) update(a updateArgs) (any, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one, err := n.find(a.ID)
	if err != nil {
		return nil, err
	}
	if a.Title != nil {
		one.Title = *a.Title
	}
	if a.Body != nil {
		if a.Mode == "append" {
			one.Body += "\n" + *a.Body
		} else {
			one.Body = *a.Body
		}
	}
	if a.Pinned != nil {
		one.Pinned = *a.Pinned
	}
	n.touch(one)
	return *one, nil
}

// touch must be called with mu held.
func (n *notes) touch(one *note) {
	n.clock = n.clock.Add(time.Minute)
	one.Updated = n.clock
}

func (n *notes) remove(a idArgs) (any, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one, err := n.find(a.ID)
	if err != nil {
		return nil, err
	}
	delete(n.byID, a.ID)
	return fmt.Sprintf("Deleted note %d (%s).", one.ID, one.Title), nil
}

type tagArgs struct {
	ID          int
	Add, Remove []string
}

func (n *notes) tag(a tagArgs) (any, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one, err := n.find(a.ID)
	if err != nil {
		return nil, err
	}
	gone := normal(a.Remove)
	one.Tags = slices.DeleteFunc(normal(append(slices.Clone(one.Tags), a.Add...)), func(t string) bool { return slices.Contains(gone, t) })
	n.touch(one)
	return one.summary(), nil
}

func (n *notes) tags(none) (any, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	counts := map[string]int{}
	for _, one := range n.byID {
		for _, t := range one.Tags {
			counts[t]++
		}
	}
	type row struct {
		Tag   string `json:"tag"`
		Notes int    `json:"notes"`
	}
	rows := make([]row, 0, len(counts))
	for t, c := range counts {
		rows = append(rows, row{t, c})
	}
	slices.SortFunc(rows, func(x, y row) int { return cmp.Or(cmp.Compare(y.Notes, x.Notes), cmp.Compare(x.Tag, y.Tag)) })
	return rows, nil
}
