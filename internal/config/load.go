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
)

// Overrides are the values of flags and variables. They win over the file. The fields' tags name the variables. An empty value, or a nil
// Admin, means that the flag isn't set. An Admin that points to an empty text switches the listener off.
type Overrides struct {
	Listen    string   `help:"Address of the data port. Default 127.0.0.1:9280." env:"OPTIMIST_LISTEN" placeholder:"ADDR"`
	Admin     *string  `help:"Admin listener; empty switches it off. Default 127.0.0.1:9281." env:"OPTIMIST_ADMIN" placeholder:"ADDR"`
	Upstream  []string `help:"A node: http://127.0.0.1:9200. Repeat it, or use commas, for more." env:"OPTIMIST_UPSTREAM" placeholder:"URL"`
	Mode      string   `help:"guard (default), observe (change nothing, count lost updates) or off." env:"OPTIMIST_MODE" placeholder:"MODE"`
	LogLevel  string   `help:"debug, info (default), warn or error." env:"OPTIMIST_LOG_LEVEL" placeholder:"LEVEL"`
	LogFormat string   `help:"text (default) or json." env:"OPTIMIST_LOG_FORMAT" placeholder:"FORMAT"`

	AdminTokenFile string `help:"File with the token for the admin listener." env:"OPTIMIST_ADMIN_TOKEN_FILE" placeholder:"FILE"`
}

// Check finds mistakes that this package can't know of, such as an expression that doesn't compile. The configuration that it gets may have
// other mistakes. If a part of a rule has a mistake already, Load drops what a Check finds in that part.
type Check func(c *Config) Problems

// Load reads a file and checks it. With an empty name, the configuration has only defaults and overrides. The error is a Problems if the
// content is wrong, and the system's own if the file can't be read.
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

// DefaultRules reports whether no file has rules, so that the built-in one is in force.
func (c *Config) DefaultRules() bool { return c.builtIn }

// override puts what flags and variables say over the file's values.
func (c *Config) override(o Overrides) Problems {
	var problems Problems
	text := func(key, flag, value string, field any) { // field points to a string, or to an enumeration
		if value == "" {
			return
		}
		to := reflect.ValueOf(field).Elem()
		c.flags[key] = flag + " (or OPTIMIST_" + strings.ToUpper(strings.NewReplacer("--", "", "-", "_").Replace(flag)) + ")"
		if e, ok := to.Interface().(enum); ok && !slices.Contains(e.choices(), value) {
			problems = append(problems, c.problem(Error, key, "%s", notOneOf(e, value)))
			return
		}
		to.SetString(value)
	}
	text("listen", "--listen", o.Listen, &c.Listen)
	if o.Admin != nil {
		c.Admin = "" // an empty value switches the listener off
		text("admin", "--admin", *o.Admin, &c.Admin)
	}
	text("admin_token_file", "--admin-token-file", o.AdminTokenFile, &c.AdminTokenFile)
	text("mode", "--mode", o.Mode, &c.Mode)
	text("log.format", "--log-format", o.LogFormat, &c.Log.Format)
	text("log.level", "--log-level", o.LogLevel, &c.Log.Level)
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
