package diff

// A Hunk is one edit of a script: the base's elements [I, I+R) are removed, and the other array's elements [J, J+K) stand
// in their place. Where as many are inserted as removed, each has its own hunk.
type Hunk struct {
	I, R, J, K int32
}

// One reports whether h puts one element in the place of one.
func (h *Hunk) One() bool { return h.R == 1 && h.K == 1 }

// Script lists the hunks of an alignment.
func (w *Workspace) Script(al *Alignment) []Hunk {
	n, m := int32(len(al.A)), int32(len(al.B))
	list := w.hunks.Alloc(al.Removed() + al.Inserted())[:0]
	for i, j := int32(0), int32(0); i < n || j < m; {
		if i < n && al.To[i] == j {
			i, j = i+1, j+1
			continue
		}
		h := Hunk{I: i, J: j}
		for i < n && al.To[i] == None {
			i++
		}
		for j < m && al.From[j] == None {
			j++
		}
		h.R, h.K = i-h.I, j-h.J
		if h.R != h.K {
			list = append(list, h)
			continue
		}
		for x := range h.R {
			list = append(list, Hunk{I: h.I + x, R: 1, J: h.J + x, K: 1})
		}
	}
	return list
}
