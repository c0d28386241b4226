package rewrite

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A transformStory is one ```transform block of testdata/transforms.md.
type transformStory struct {
	name, doc, result, again, fails, reads, repeatable string
	line                                               int
	steps                                              []string
	in                                                 Inputs
}

// testInputs are what stories can refer to beside documents.
func testInputs() Inputs {
	return Inputs{ID: "4711", Index: "orders", User: "ada", Now: time.Date(2024, 5, 1, 12, 20, 30, 4e6, time.FixedZone("", 7200)),
		Header: func(name string) ([]byte, bool) {
			if strings.EqualFold(name, "x-by") {
				return []byte(`Grace "Amazing" Hopper`), true
			}
			return nil, false
		}}
}

func TestTransformStories(t *testing.T) {
	stories := readTransformStories(t)
	if len(stories) < 90 {
		t.Fatalf("only %d stories", len(stories))
	}
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) { s.run(t) })
	}
}

func (s *transformStory) transformer() (*Transformer, error) {
	steps, err := ParseSteps([]byte("["+strings.Join(s.steps, ",")+"]"), Limits{})
	if err != nil {
		return nil, err
	}
	return NewTransformer(steps, Limits{})
}

func (s *transformStory) run(t *testing.T) {
	tr, err := s.transformer()
	var got []byte
	if err == nil {
		got, err = tr.Apply([]byte(s.doc), &s.in)
	}
	switch {
	case s.fails != "":
		if err == nil || !strings.Contains(err.Error(), s.fails) {
			t.Errorf("line %d: got %s, %v\nwant the error %s", s.line, got, err, s.fails)
		}
		return
	case err != nil || string(got) != s.result:
		t.Fatalf("line %d: %v\n got %s\nwant %s", s.line, err, got, s.result)
	}
	again, err := tr.Apply(got, &s.in)
	if s.again == "" {
		s.again = s.result
	}
	if s.again != "error" && string(again) != s.again || (s.again == "error") != (err != nil) {
		t.Errorf("line %d, again: %v\n got %s\nwant %s", s.line, err, again, s.again)
	}
	if want := s.repeatable == ""; tr.Repeatable() != want {
		t.Errorf("line %d: repeatable is %v", s.line, tr.Repeatable())
	}
	if tr.Repeatable() && s.again != s.result {
		t.Errorf("line %d: repeatable, but not the same again", s.line)
	}
	if tr.ReadsCurrent() != (s.reads == "current") {
		t.Errorf("line %d: reads current: %v", s.line, tr.ReadsCurrent())
	}
}

func readTransformStories(t testing.TB) (stories []*transformStory) {
	text, err := os.ReadFile("testdata/transforms.md")
	if err != nil {
		t.Fatal(err)
	}
	section, heading, inside := "", "", false
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			if inside = line == "```transform"; inside {
				stories = append(stories, &transformStory{name: section + "/" + heading, line: i + 1, in: testInputs()})
			}
		case inside:
			if !stories[len(stories)-1].read(line) {
				t.Fatalf("line %d: %s", i+1, line)
			}
		case strings.HasPrefix(line, "### "):
			heading = strings.TrimPrefix(line, "### ")
		case strings.HasPrefix(line, "## "):
			section = strings.TrimPrefix(line, "## ")
		}
	}
	return stories
}

func (s *transformStory) read(line string) bool {
	key, text, _ := strings.Cut(line, ": ")
	switch key {
	case "doc":
		s.doc = strings.TrimSpace(text)
	case "incoming":
		s.in.Incoming = []byte(text)
	case "current":
		s.in.Current = []byte(text)
	case "base":
		s.in.Base = []byte(text)
	case "step":
		s.steps = append(s.steps, text)
	case "result":
		s.result = text
	case "again":
		s.again = text
	case "error":
		s.fails = text
	case "reads":
		s.reads = text
	case "repeatable":
		s.repeatable = text
		_, err := strconv.ParseBool(text)
		return err == nil
	default:
		return false
	}
	return true
}
