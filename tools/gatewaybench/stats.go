package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// These are the states of a cell that has no number.
const (
	notOffered = "not offered" // the peer has no such feature
	failed     = "failed"      // the feature did not work, or the peer could not be installed; the log says how
	noTime     = "no time"     // the time of the run was over before this cell was measured
)

// cell is one column of a figure, for one peer over one transport.
type cell struct {
	Figure    string    `json:"figure"`
	Column    string    `json:"column"`
	Peer      string    `json:"peer"`
	Transport string    `json:"transport"`
	Unit      string    `json:"unit,omitempty"`
	Better    string    `json:"better,omitempty"` // the constant less or more; empty if no value is better than another
	Values    []float64 `json:"values,omitempty"` // one for each successful round, in their order
	Rounds    int       `json:"rounds,omitempty"` // the largest len(Values) of all cells of this figure and transport
	Median    float64   `json:"median"`
	Low       float64   `json:"low"` // lowest value of all rounds
	High      float64   `json:"high"`
	State     string    `json:"state,omitempty"` // empty if there are Values, or a word in Text
	Text      string    `json:"text,omitempty"`  // words instead of a number, or what went wrong
	Log       string    `json:"log"`             // name of the log, relative to the report
}

// settle computes Median, Low and High from Values.
func (c *cell) settle() {
	if len(c.Values) > 0 {
		c.Median, c.Low, c.High = median(c.Values), slices.Min(c.Values), slices.Max(c.Values)
	}
}

func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	if len(v) == 0 {
		return math.NaN()
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// percentile returns the smallest value v for which at least this share of all values is <= v (nearest rank). share is from 0
// to 1.
func percentile(values []float64, share float64) float64 {
	v := slices.Sorted(slices.Values(values))
	if len(v) == 0 {
		return math.NaN()
	}
	rank := int(math.Ceil(share * float64(len(v))))
	return v[min(max(rank, 1), len(v))-1]
}

// spread returns (High - Low) / 2 / |Median|, or 0 if Median is 0. The report shows it as the noise of the cell.
func (c *cell) spread() float64 {
	if c.Median == 0 {
		return 0
	}
	return (c.High - c.Low) / 2 / math.Abs(c.Median)
}

// minNoise is the noise, as a share of the median, that [cell.agrees] gets for figures whose values vary. It is needed because the
// values of a few rounds can be nearly equal by chance.
const minNoise = 0.05

// agrees reports whether two runs of the same cell agree within their noise. Each range from Low to High is widened on both
// sides by max((High - Low) / 2, noise * Median). The runs agree if the widened ranges meet. For figures that never vary, noise
// is 0, so the values must be equal. Cells with a state agree if the states are equal, and cells with words if the words are.
func (c *cell) agrees(other *cell, noise float64) bool {
	if c.State != "" || other.State != "" {
		return c.State == other.State // what went wrong may differ
	}
	if c.Text != other.Text && len(c.Values) == 0 {
		return false
	}
	margin := func(c *cell) float64 { return max((c.High-c.Low)/2, noise*c.Median) }
	return c.Low-margin(c) <= other.High+margin(other) && other.Low-margin(other) <= c.High+margin(c)
}

// number formats a number for people.
func number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "-"
	case a >= 1000:
		return thousands(int64(math.Round(v)))
	case a >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func thousands(n int64) string {
	digits := fmt.Sprint(n)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// show returns the text of a cell in the table.
func (c *cell) show() string {
	switch {
	case c.State != "":
		return c.State
	case len(c.Values) == 0:
		return c.Text
	}
	text := number(c.Median)
	if c.Low != c.High {
		text += fmt.Sprintf(" ±%.0f%%", 100*c.spread())
	}
	if c.Text != "" {
		return text + " or " + c.Text
	}
	if len(c.Values) < c.Rounds {
		text += fmt.Sprintf(" (%d of %d rounds)", len(c.Values), c.Rounds)
	}
	return text
}
