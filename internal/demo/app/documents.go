package app

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// TotalPath is the JSON Pointer of the field that the shape Order adds in, and CountPath of that in which Cart counts.
const (
	TotalPath = "/" + totalField
	CountPath = "/" + countField
)

const (
	totalField  = "total"
	clerksField = "by"
	lastField   = "last"
	statusField = "status"

	// maxAmount is what a line of an order adds to its total at most.
	maxAmount = 14
	// ownTexts is how many fields of a profile each worker has.
	ownTexts = 4
)

func seedOrder(d document) {
	d[listField], d[totalField], d[clerksField], d[lastField] = []any{}, number(0), map[string]any{}, ""
}

// changeOrder appends a line. Two workers may well append the same.
func changeOrder(d document, worker, n int) (entry string) {
	amount := int64(maxAmount - (7*worker+3*n)%10)
	line := map[string]any{"article": fmt.Sprintf("A-%d", (131*worker+17*n)%500), "amount": number(amount)}
	list, _ := d[listField].([]any)
	d[listField] = append(list, line)
	d[totalField] = number(integer(d[totalField]) + amount)
	clerks, _ := d[clerksField].(map[string]any)
	clerks[ownField(worker)] = number(integer(clerks[ownField(worker)]) + 1)
	d[lastField] = ownField(worker)
	return entryName(line)
}

// countOrder looks for the lines, and compares the total and the workers' own numbers with them.
func countOrder(d document, accounts []account, r *Result) {
	countList(d, accounts, r)
	clerks, _ := d[clerksField].(map[string]any)
	var sure, unsure, lost, invented int64
	for i := range accounts {
		a := &accounts[i]
		sure, unsure = sure+amounts(a.sure), unsure+amounts(a.unsure)
		own := integer(clerks[ownField(a.number)])
		lost += max(a.acknowledged-own, 0)
		invented += max(own-a.acknowledged-a.unknown, 0)
	}
	total := integer(d[totalField])
	r.atLeast(lost, invented)
	r.atLeast(linesOf(sure-total), linesOf(total-sure-unsure))
}

func amounts(lines []string) (sum int64) {
	for _, s := range lines {
		var line struct{ Amount int64 }
		_ = json.Unmarshal([]byte(s), &line) // the worker has encoded it
		sum += line.Amount
	}
	return sum
}

// linesOf is how many lines make an amount, at least.
func linesOf(amount int64) int64 { return max((amount+maxAmount-1)/maxAmount, 0) }

func seedTicket(d document) {
	d[listField], d[statusField], d[timeField] = []any{}, "open", now()
}

// changeTicket comments in seven of ten rounds, sets the status in five, and so does both in two. Whose status stands in the end nobody can
// tell: it isn't counted.
func changeTicket(d document, worker, round, step int) (entries []string) {
	n := worker + round
	if n%10 < 7 {
		list, _ := d[listField].([]any)
		for i := range step {
			text := fmt.Sprintf("%s, says %s for the %d. time", words[n%len(words)], words[(worker*round)%len(words)], round+i)
			comment := map[string]any{"author": ownField(worker), "text": text, "at": now()}
			list, entries = append(list, comment), append(entries, entryName(comment))
		}
		d[listField] = list
	}
	if n%10 >= 5 {
		d[statusField] = []string{"open", "pending", "waiting for customer", "solved"}[(worker+round/2)%4]
	}
	d[timeField] = now()
	return entries
}

var words = strings.Fields("amber basil cedar delta ember fjord grove hazel ivory jolly karma lemon maple nylon ocean pearl")

func seedProfile(d document, first, workers int) {
	for n := first; n < first+workers; n++ {
		for i := range ownTexts {
			d[ownText(n, i)] = words[i] + " 0"
		}
	}
}

// ownText is the name of the i-th field of a worker. Its text ends with how often it was set.
func ownText(worker, i int) string { return fmt.Sprintf("%s-%d", ownField(worker), i) }

func changeProfile(d document, worker, round, step int) {
	name := ownText(worker, round%ownTexts)
	d[name] = fmt.Sprintf("%s %d", words[(worker+round)%len(words)], times(d[name])+int64(step))
}

func countProfile(d document, accounts []account, r *Result) {
	for i := range accounts {
		a := &accounts[i]
		var found int64
		for k := range ownTexts {
			found += times(d[ownText(a.number, k)])
		}
		r.Found += found
		r.Lost += max(a.acknowledged-found, 0)
		r.Invented += max(found-a.acknowledged-a.unknown, 0)
	}
}

// times is how often a text of a profile was set, as it says itself.
func times(v any) int64 {
	s, _ := v.(string)
	_, n, _ := strings.Cut(s, " ")
	i, _ := strconv.ParseInt(n, 10, 64)
	return i
}
