package rank

import (
	"math"
	"slices"
)

// Origin says whether a write was made from a read, or from what the session wrote last although the reads are older, as far as the write's
// content shows that. A program that writes what its database holds reads for other ends.
type Origin uint8

// What content shows of origins.
const (
	OriginUnknown Origin = iota
	OriginRead           // it was made from a read
	OriginOwn            // it was made from what the session wrote last
)

const (
	// originMargin is the least difference in price between what the session wrote last and the likeliest read, for the origin to be known.
	originMargin = 4
	// mirrored is the price of all other candidates, where clients were seen to write from what the session wrote last.
	mirrored = 40
)

// ownOf returns the index of what the session wrote last, or -1.
func ownOf(cs []Candidate) int {
	return slices.IndexFunc(cs, func(c Candidate) bool { return c.Own })
}

// originOf returns what the choice by content alone shows. That is nothing if somebody has read what the session wrote last, or anything
// newer, and for a save without a change.
func originOf(cs []Candidate, verdicts []verdict) Origin {
	own := ownOf(cs)
	if own < 0 || verdicts[own].unknown || verdicts[own].saves() {
		return OriginUnknown
	}
	o, price := &verdicts[own], priceAsRead(&cs[own], &verdicts[own])
	reads, margin := 0, originMargin
	read, past := math.MaxInt, math.MaxInt // the least prices of a read, and of what is older than the session's last
	for i := range cs {
		switch v := &verdicts[i]; {
		case i == own:
		case cs[i].Spent:
			past = min(past, priceAsRead(&cs[i], v))
		case i > own || cs[i].Numbers == cs[own].Numbers || v.unknown || v.saves() || v.changes == o.changes:
			return OriginUnknown
		default:
			reads++
			if read = min(read, priceAsRead(&cs[i], v)); v.absent {
				margin = narrow // new documents of one kind have much in common
			}
		}
	}
	switch {
	case reads == 0:
	case read < price && price-read >= originMargin:
		return OriginRead
	case price <= past && price < read && read-price >= margin:
		return OriginOwn
	}
	return OriginUnknown
}

// priceAsRead is what the candidate's changes cost, whoever has it in hand.
func priceAsRead(c *Candidate, v *verdict) int {
	switch {
	case v.far:
		return math.MaxInt
	case c.Spent && v.saves():
		return v.price - spentSave
	case c.Spent:
		return v.price - spent
	case c.Foreign:
		return v.price - foreign
	}
	return v.price
}

// believeOwn has all candidates cost something but what the session wrote last, and reads of that.
func believeOwn(cs []Candidate, verdicts []verdict) {
	own := ownOf(cs)
	if own < 0 || verdicts[own].far {
		return
	}
	verdicts[own].price = priceAsRead(&cs[own], &verdicts[own])
	for i := range cs {
		if i != own && (cs[i].Numbers != cs[own].Numbers || cs[own].View) {
			verdicts[i].price += mirrored
		}
	}
}
