package upstream

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/mcptest"
)

func offering(era string) mcptest.Spec {
	return mcptest.Spec{
		Era:       era,
		Resources: json.RawMessage(`[{"uri":"a://1","name":"one","size":9007199254740993},{"name":"no uri"},{"uri":"a://2","name":"two"}]`),
		Templates: json.RawMessage(`[{"uriTemplate":"a://{n}","name":"any"}]`),
		Prompts:   json.RawMessage(`[{"name":"greet","arguments":[{"name":"who"}]}]`),
	}
}

func names(items []catalog.Item) (all []string) {
	for _, item := range items {
		all = append(all, item.Name)
	}
	return all
}

// TestItems: a server that offers more than tools is ready as soon as its tools are read. mcpx then reads the
// other lists, and drops items that no request could name.
func TestItems(t *testing.T) {
	for _, era := range []string{mcptest.EraLegacy, mcptest.EraModern} {
		t.Run(era, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spec, logs := inProcess(t, offering(era))
				u := ready(t, spec)
				u.AwaitLists(context.Background())
				status := u.Status()
				if want := (catalog.Offers{Resources: true, Subscribe: true, Prompts: true, Completions: true}); !status.Listed || status.Offers != want {
					t.Fatalf("listed %t, offers %+v", status.Listed, status.Offers)
				}
				if got := names(status.Items.Resources); !slices.Equal(got, []string{"a://1", "a://2"}) {
					t.Errorf("resources %v", got)
				}
				if raw := string(status.Items.Resources[0].Raw); raw != `{"uri":"a://1","name":"one","size":9007199254740993}` {
					t.Errorf("raw: %s", raw)
				}
				if len(status.Items.Templates) != 1 || len(status.Items.Prompts) != 1 {
					t.Errorf("items %+v", status.Items)
				}
				// Many changes in a row cause one refresh. Since the items are equal, Items stays the same
				// pointer.
				before := len(logs.all().Method("prompts/list"))
				for range 5 {
					if _, err := text(u, "notify", `{"method":"notifications/prompts/list_changed"}`); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(3 * time.Second)
				if got := len(logs.all().Method("prompts/list")) - before; got != 1 {
					t.Errorf("%d refreshes", got)
				}
				if u.Status().Items != status.Items {
					t.Error("the same items are other items now")
				}
			})
		})
	}
}

// TestItems_none: mcpx sends a server without resources and prompts no requests for such lists.
func TestItems_none(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec, logs := inProcess(t, mcptest.Spec{})
		u := ready(t, spec)
		time.Sleep(time.Second)
		if status := u.Status(); !status.Listed || len(logs.all().Method("resources/list")) > 0 {
			t.Errorf("listed %t", status.Listed)
		}
	})
}

// TestItems_hanging: a list that hangs delays neither the tools nor the other lists, and is read again later.
func TestItems_hanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := offering("")
		fake.HangMethods = []string{"prompts/list"}
		spec, logs := inProcess(t, fake)
		u := ready(t, spec)
		u.AwaitLists(context.Background())
		status := u.Status()
		if status.Listed || len(status.Items.Resources) != 2 || status.State != catalog.Ready {
			t.Errorf("status %+v", status)
		}
		time.Sleep(2 * relistRetry)
		if len(logs.all().Method("prompts/list")) < 2 {
			t.Error("not asked again")
		}
	})
}

// TestItems_part: Listed is not set as long as one of the lists was never read, even if another list was read again. If it were
// set, mcpx would drop the lists that it has on disk.
func TestItems_part(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := offering("")
		fake.FailMethods = []string{"prompts/list"}
		spec, logs := inProcess(t, fake)
		u := ready(t, spec)
		u.AwaitLists(context.Background())
		before := len(logs.all().Method("resources/list"))
		if _, err := text(u, "notify", `{"method":"notifications/resources/list_changed"}`); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if len(logs.all().Method("resources/list")) == before || u.Status().Listed {
			t.Errorf("listed %t", u.Status().Listed)
		}
	})
}

// TestItems_lazy: mcpx starts a lazy server once for its catalogue, and reads all lists before it stops the
// server.
func TestItems_lazy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec, _ := inProcess(t, offering(""))
		spec.Lazy = true
		u := connect(t, spec)
		if status := awaitState(t, u, catalog.Idle); !status.Listed || len(status.Items.Resources) != 2 {
			t.Errorf("status %+v", status)
		}
	})
}

// TestItems_ended: a list that is being read when mcpx ends, or ends the session itself, is no warning.
func TestItems_ended(t *testing.T) {
	for _, method := range []string{"prompts/list", "tools/list"} {
		synctest.Test(t, func(t *testing.T) {
			wedged := filepath.Join(t.TempDir(), "wedged")
			fake := mcptest.Spec{WedgeFile: wedged, Prompts: json.RawMessage(`[{"name":"greet"}]`)}
			if method == "prompts/list" {
				fake.HangMethods = []string{method}
			}
			spec, logs := inProcess(t, fake)
			out := logged(&spec)
			u := ready(t, spec)
			if method == "tools/list" {
				u.AwaitLists(context.Background())
				if err := os.WriteFile(wedged, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				go u.Relist(context.Background()) // ends with the session
			}
			time.Sleep(time.Second)
			if n := len(logs.all().Method(method)); n == 0 {
				t.Fatal("nothing is being listed")
			}
			u.Close(0)
			if strings.Contains(out.String(), "level=WARN") {
				t.Errorf("%s", out)
			}
		})
	}
}
