package compress

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"mcpx/internal/base/wire"
)

// call converts a call that repr writes for a type that JSON does not have; database drivers return such values. Decimal
// becomes a number, or a string if it is no finite number. UUID and the types of datetime become strings: dates and times in
// ISO 8601, durations as Python's str writes them.
func (p *python) call() bool {
	rest := p.src[p.pos:]
	open := strings.IndexByte(rest[:min(len(rest), 24)], '(')
	if open < 0 {
		return false
	}
	p.pos += open + 1
	switch rest[:open] {
	case "Decimal", "decimal.Decimal":
		return p.quotedCall(func(text string) string {
			if wire.Valid([]byte(text)) && text[0] != '"' {
				return text
			}
			return `"` + text + `"` // NaN or Infinity
		})
	case "UUID", "uuid.UUID":
		return p.quotedCall(func(text string) string { return `"` + text + `"` })
	case "datetime.datetime":
		return p.written(p.dateTime())
	case "datetime.date":
		return p.written(p.date())
	case "datetime.time":
		return p.written(p.clock())
	case "datetime.timedelta":
		d, ok := p.duration()
		return p.written(daysAndTime(d), ok)
	}
	return false
}

// written appends text as a JSON string in place of a call, and returns true. If ok is false, because the call could not be
// read, it only returns false.
func (p *python) written(text string, ok bool) bool {
	if !ok {
		return false
	}
	p.out = append(append(append(p.out, '"'), text...), '"')
	return true
}

// quotedCall reads the only argument of a call, which must be a string of plain characters. It appends what write returns for
// this string.
func (p *python) quotedCall(write func(text string) string) bool {
	quote := p.peek()
	if quote != '\'' && quote != '"' {
		return false
	}
	rest := p.src[p.pos+1:]
	end := strings.IndexByte(rest, quote)
	if end <= 0 || strings.Trim(rest[:end], "-+.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return false
	}
	p.pos += end + 2
	p.out = append(p.out, write(rest[:end])...)
	return p.accept(')')
}

// numbers reads the numbers that are the first arguments of a call. It stops after the end of the call, or before the first
// argument with a name; named is true in the second case. ok is false if there are fewer than minimum or more than maximum numbers.
func (p *python) numbers(minimum, maximum int) (n []int, named, ok bool) {
	for {
		p.peek()
		rest := p.src[p.pos:]
		end := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		v, err := strconv.Atoi(rest[:end])
		if err != nil || len(n) == maximum {
			return nil, false, false
		}
		p.pos += end
		n = append(n, v)
		if p.accept(')') {
			return n, false, len(n) >= minimum
		}
		if !p.accept(',') {
			return nil, false, false
		}
		if c := p.peek(); letter(c) {
			return n, true, len(n) >= minimum
		}
	}
}

// date reads the arguments of datetime.date and the end of the call, and returns the date, such as 2024-02-29.
func (p *python) date() (string, bool) {
	n, named, ok := p.numbers(3, 3)
	if !ok || named || !isDate(n) {
		return "", false
	}
	return fmt.Sprintf("%04d-%02d-%02d", n[0], n[1], n[2]), true
}

func isDate(n []int) bool {
	d := time.Date(n[0], time.Month(n[1]), n[2], 0, 0, 0, 0, time.UTC)
	return n[0] > 0 && n[0] < 10000 && int(d.Month()) == n[1] && d.Day() == n[2]
}

// dateTime reads the arguments of datetime.datetime and the end of the call, and returns the time, such as
// 2024-02-29T01:02:03+00:00.
func (p *python) dateTime() (string, bool) {
	n, named, ok := p.numbers(5, 7)
	if !ok || !isDate(n) {
		return "", false
	}
	clock, ok := clockOf(n[3:])
	zone := ""
	if ok && named {
		zone, ok = p.zone()
	}
	return fmt.Sprintf("%04d-%02d-%02dT%s%s", n[0], n[1], n[2], clock, zone), ok
}

// clock reads the arguments of datetime.time and the end of the call, and returns the time, such as 01:02:03.
func (p *python) clock() (string, bool) {
	n, named, ok := p.numbers(2, 4)
	if !ok {
		return "", false
	}
	clock, ok := clockOf(n)
	zone := ""
	if ok && named {
		zone, ok = p.zone()
	}
	return clock + zone, ok
}

// clockOf writes a time of day. n has the hours, minutes, seconds and microseconds, and may end after any of them. clockOf
// returns false if one of the numbers is too large.
func clockOf(n []int) (string, bool) {
	var all [4]int
	copy(all[:], n)
	text := fmt.Sprintf("%02d:%02d:%02d", all[0], all[1], all[2])
	if all[3] > 0 {
		text += fmt.Sprintf(".%06d", all[3])
	}
	return text, all[0] < 24 && all[1] < 60 && all[2] < 60 && all[3] < 1_000_000
}

// zone reads the argument tzinfo and the end of the call, and returns the time zone as an offset.
func (p *python) zone() (string, bool) {
	const named = "tzinfo="
	if !strings.HasPrefix(p.src[p.pos:], named) {
		return "", false
	}
	p.pos += len(named)
	for _, utc := range []string{"datetime.timezone.utc", "zoneinfo.ZoneInfo(key='UTC')", "zoneinfo.ZoneInfo(key='Etc/UTC')"} {
		if strings.HasPrefix(p.src[p.pos:], utc) {
			p.pos += len(utc)
			return "+00:00", p.accept(')')
		}
	}
	const offset = "datetime.timezone(datetime.timedelta("
	if !strings.HasPrefix(p.src[p.pos:], offset) {
		return "", false
	}
	p.pos += len(offset)
	d, ok := p.duration()
	if !ok || !p.accept(')') || !p.accept(')') || d%time.Minute != 0 || d <= -24*time.Hour || d >= 24*time.Hour {
		return "", false
	}
	sign := '+'
	if d < 0 {
		sign, d = '-', -d
	}
	return fmt.Sprintf("%c%02d:%02d", sign, d/time.Hour, d%time.Hour/time.Minute), true
}

// duration reads the arguments of datetime.timedelta as repr writes them: arguments with names, or only 0.
func (p *python) duration() (d time.Duration, ok bool) {
	if p.accept('0') {
		return 0, p.accept(')')
	}
	for _, unit := range []struct {
		name string
		is   time.Duration
	}{{"days=", 24 * time.Hour}, {"seconds=", time.Second}, {"microseconds=", time.Microsecond}} {
		p.peek()
		rest, found := strings.CutPrefix(p.src[p.pos:], unit.name)
		if !found {
			continue
		}
		end := len(rest) - len(strings.TrimLeft(rest, "-0123456789"))
		n, err := strconv.Atoi(rest[:end])
		if err != nil || n > maxDays && unit.is > time.Second || n < -maxDays || n > 1_000_000 {
			return 0, false
		}
		d += time.Duration(n) * unit.is
		p.pos += len(unit.name) + end
		if p.accept(')') {
			return d, true
		}
		if !p.accept(',') {
			return 0, false
		}
	}
	return 0, false
}

// maxDays keeps a duration within the range of time.Duration.
const maxDays = 100_000

// daysAndTime writes a duration as Python's str does: 2 days, 3:04:05.
func daysAndTime(d time.Duration) string {
	const day = 24 * time.Hour
	days := d / day
	if d < 0 && d%day != 0 {
		days--
	}
	rest := d - days*day
	text := fmt.Sprintf("%d:%02d:%02d", rest/time.Hour, rest%time.Hour/time.Minute, rest%time.Minute/time.Second)
	if micro := rest % time.Second / time.Microsecond; micro > 0 {
		text += fmt.Sprintf(".%06d", micro)
	}
	switch days {
	case 0:
		return text
	case 1, -1:
		return fmt.Sprintf("%d day, %s", days, text)
	}
	return fmt.Sprintf("%d days, %s", days, text)
}
