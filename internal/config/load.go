package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"optimist/internal/jsontext"
	"optimist/internal/spelling"
)

// Overrides are what flags and variables say, by which they are known in their tags. They win over the file. Empty values say
// nothing, but for an empty Admin, which switches the listener off: nil says nothing.
type Overrides struct {
	Listen    string   `help:"Address of the data port. Default 127.0.0.1:9280." env:"OPTIMIST_LISTEN" placeholder:"ADDR"`
	Admin     *string  `help:"Admin listener; empty switches it off. Default 127.0.0.1:9281." env:"OPTIMIST_ADMIN" placeholder:"ADDR"`
	Upstream  []string `help:"A node: http://127.0.0.1:9200. Repeat it, or use commas, for more." env:"OPTIMIST_UPSTREAM" placeholder:"URL"`
	Mode      string   `help:"guard (default), observe (change nothing, count lost updates) or off." env:"OPTIMIST_MODE" placeholder:"MODE"`
	LogLevel  string   `help:"debug, info (default), warn or error." env:"OPTIMIST_LOG_LEVEL" placeholder:"LEVEL"`
	LogFormat string   `help:"text (default) or json." env:"OPTIMIST_LOG_FORMAT" placeholder:"FORMAT"`

	AdminTokenFile string `help:"File with the token for the admin listener." env:"OPTIMIST_ADMIN_TOKEN_FILE" placeholder:"FILE"`
}

// Check finds mistakes for which this package doesn't know enough, such as an expression that doesn't compile. It gets a configuration that
// may have others. What it finds in a part of a rule that has a mistake already doesn't count.
type Check func(c *Config) Problems

// Load reads a file and checks it. An empty name is a configuration of defaults and overrides alone. The error is a Problems
// where the content is wrong, and the system's own where the file can't be read.
func Load(name string, o Overrides, further ...Check) (*Config, error) {
	if name == "" {
		return parse("", nil, o, nil, further)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("the configuration can't be read: %w", err)
	}
	return parse(name, data, o, (*Config).whole, further)
}

// Parse reads a configuration: defaults, then data, then overrides, then all checks. name stands in messages, and relative file names
// start from its folder. It reads no further file: only Load reads rule_files. The error, if any, is a Problems; with no error, Warnings
// has the other findings.
func Parse(name string, data []byte, o Overrides) (*Config, error) {
	return parse(name, data, o, nil, nil)
}

func parse(name string, data []byte, o Overrides, files Check, further []Check) (*Config, error) {
	cfg := start()
	cfg.file = name
	cfg.at, cfg.flags = map[string]spot{}, map[string]string{}
	d := newDecoder(cfg, name, data)
	d.document(data, cfg, "")
	for i := range cfg.Rules {
		cfg.Rules[i].key = "rules[" + strconv.Itoa(i) + "]"
	}
	cfg.noRules = cfg.Rules != nil && len(cfg.Rules) == 0
	if _, ok := cfg.at["rules[0]"]; !ok {
		cfg.Rules = nil
	}
	problems := d.problems
	cfg.blank = !d.read && len(problems) == 0
	if files != nil {
		problems = append(problems, files(cfg)...)
	}
	if len(cfg.Rules) == 0 {
		cfg.Rules, cfg.builtIn = []Rule{newRule("default")}, true
	}
	problems = append(problems, cfg.override(o)...)
	problems = append(problems, cfg.validate(problems)...)
	cfg.fill()
	for _, check := range further {
		problems = append(problems, problems.beside(check(cfg))...)
	}
	problems.Sort()
	if problems.failed() {
		return nil, problems
	}
	cfg.warnings = problems
	cfg.resolveFiles()
	return cfg, nil
}

// Warnings are what was found that doesn't stop the configuration from being used.
func (c *Config) Warnings() []Problem { return c.warnings }

// DefaultRules reports whether the rules are the built-in ones, since no file has any.
func (c *Config) DefaultRules() bool { return c.builtIn }

// override puts what flags and variables say over the file's values.
func (c *Config) override(o Overrides) Problems {
	var problems Problems
	text := func(key, flag, value string, to reflect.Value) {
		if value == "" {
			return
		}
		c.flags[key] = flag + " (or OPTIMIST_" + strings.ToUpper(strings.NewReplacer("--", "", "-", "_").Replace(flag)) + ")"
		if e, ok := to.Interface().(enum); ok && !slices.Contains(e.choices(), value) {
			problems = append(problems, c.problem(Error, key, "%s", spelling.NotOneOf(value, e.choices())))
			return
		}
		to.SetString(value)
	}
	text("listen", "--listen", o.Listen, reflect.ValueOf(&c.Listen).Elem())
	if o.Admin != nil {
		c.Admin = "" // with an empty value it stays so
		text("admin", "--admin", *o.Admin, reflect.ValueOf(&c.Admin).Elem())
	}
	text("admin_token_file", "--admin-token-file", o.AdminTokenFile, reflect.ValueOf(&c.AdminTokenFile).Elem())
	text("mode", "--mode", o.Mode, reflect.ValueOf(&c.Mode).Elem())
	text("log.format", "--log-format", o.LogFormat, reflect.ValueOf(&c.Log.Format).Elem())
	text("log.level", "--log-level", o.LogLevel, reflect.ValueOf(&c.Log.Level).Elem())
	if len(o.Upstream) > 0 {
		c.Upstream.URLs = make([]string, len(o.Upstream))
		for i, url := range o.Upstream {
			c.Upstream.URLs[i] = strings.TrimSpace(url) // a list is often written with a blank behind each comma
			c.flags[fmt.Sprintf("upstream.urls[%d]", i)] = "--upstream (or OPTIMIST_UPSTREAM)"
		}
	}
	return problems
}

// JSON is the configuration in force, with every default, in the file's own keys. It holds no secret: those are in files,
// of which it has the names.
func (c *Config) JSON() ([]byte, error) {
	text, err := jsontext.Marshal(c)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = json.Indent(&b, text, "", "  ")
	return b.Bytes(), err
}
