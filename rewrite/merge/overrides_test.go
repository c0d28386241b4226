package merge

import "testing"

func TestAPartThatSaysTheSameWhateverItsBase(t *testing.T) {
	for name, c := range map[string]struct {
		def        Strategy
		base, part string
		want       bool
	}{
		"a value":                     {Sent, `{"s":"new"}`, `{"s":"open"}`, true},
		"of what isn't there":         {Sent, `{}`, `{"s":"open","m":1}`, true},
		"null":                        {Sent, `{"s":"new"}`, `{"s":null}`, true},
		"inside of objects":           {Sent, `{"o":{"a":1,"b":1}}`, `{"o":{"a":2}}`, true},
		"in an object of its own":     {Sent, `{}`, `{"o":{"a":2}}`, true},
		"nothing":                     {Sent, `{"s":"new"}`, `{}`, true},
		"what stays as it was":        {Sent, `{"s":"new","note":"x"}`, `{"s":"open","note":"x"}`, false},
		"spelled otherwise":           {Sent, `{"m":1}`, `{"m":1.0}`, false},
		"a list":                      {Sent, `{"l":[1]}`, `{"l":[2]}`, false},
		"a list in an object":         {Sent, `{}`, `{"o":{"l":[]}}`, false},
		"a sum":                       {Sent, `{"n":1,"s":"new"}`, `{"n":2,"s":"open"}`, false},
		"a sum below":                 {Sent, `{}`, `{"o":{"x":{"n":2}}}`, false},
		"where others win":            {Current, `{"s":"new"}`, `{"s":"open"}`, false},
		"but for a path":              {Current, `{"t":"new"}`, `{"t":"open"}`, true},
		"where a conflict is refused": {Fail, `{"s":"new"}`, `{"s":"open"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := New(c.def, []PathRule{{Path: "/n", Strategy: Sum}, {Path: "/o/*/n", Strategy: Sum}, {Path: "/t", Strategy: Sent}})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := m.Overrides([]byte(c.base), []byte(c.part)); err != nil || got != c.want {
				t.Errorf("%t %v", got, err)
			}
			if absent, err := m.Overrides(nil, []byte(c.part)); c.base == `{}` && (err != nil || absent != c.want) {
				t.Errorf("of the absent document: %t %v", absent, err)
			}
		})
	}
	m, _ := New(Sent, nil)
	if got, err := m.Overrides([]byte(`{}`), []byte(`[`)); err == nil || got {
		t.Error("what can't be read says nothing")
	}
}
