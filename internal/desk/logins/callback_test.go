package logins

import "testing"

// TestCallback_Pasted: if a pasted address is not the redirect of the login, the user can paste another one. If nobody can be
// asked again, or the input has ended, the login fails.
func TestCallback_Pasted(t *testing.T) {
	const redirect, loginPage = "http://127.0.0.1:1/callback?state=s&code=c", "https://a.example/authorize?response_type=code&state=s"
	for _, test := range []struct {
		lines    []string
		ask      bool
		asked    int
		received bool
	}{
		{[]string{redirect}, false, 0, true},
		{[]string{"nonsense", loginPage, "http://127.0.0.1:1/callback?state=other&code=c", redirect}, true, 3, true},
		{[]string{"nonsense", redirect}, false, 0, false},
		{[]string{"nonsense"}, true, 1, false},
	} {
		pasted := make(chan string, len(test.lines))
		for _, line := range test.lines {
			pasted <- line
		}
		close(pasted)
		asked := 0
		var again func(error)
		if test.ask {
			again = func(error) { asked++ }
		}
		answer, err := newCallback("s", "a").wait(t.Context(), pasted, again)
		if received := err == nil && answer.Get("code") == "c"; received != test.received || asked != test.asked {
			t.Errorf("%q: %v, %v, asked %d times", test.lines, answer, err, asked)
		}
	}
	// The input has ended, but the browser comes.
	pasted, back := make(chan string), newCallback("s", "a")
	close(pasted)
	back.answers <- map[string][]string{"code": {"c"}}
	if answer, err := back.wait(t.Context(), pasted, nil); err != nil || answer.Get("code") != "c" {
		t.Errorf("the browser: %v, %v", answer, err)
	}
}
