package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"optimist/internal/spelling"
)

const variablePrefix = "OPTIMIST_"

// misspelt says which variables of the environment are probably meant for optimist, and are read by nothing. Others with the prefix are
// left alone: in Kubernetes, a service of the name optimist gives each container several.
func misspelt(environ []string, model *kong.Application) (warnings []string) {
	known := variables(model)
	const text = "optimist: the variable %s is ignored; did you mean %s?"
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		rest, ours := strings.CutPrefix(name, variablePrefix)
		if !ours || slices.Contains(known, strings.ToLower(rest)) {
			continue
		}
		if near := spelling.Nearest(rest, known); near != "" {
			warnings = append(warnings, fmt.Sprintf(text, name, variablePrefix+strings.ToUpper(near)))
		}
	}
	return warnings
}

// variables are the variables that flags are read from, in lower case and without their prefix.
func variables(model *kong.Application) (known []string) {
	var visit func(n *kong.Node)
	visit = func(n *kong.Node) {
		for _, flag := range n.Flags {
			for _, name := range flag.Envs {
				if name = strings.ToLower(strings.TrimPrefix(name, variablePrefix)); !slices.Contains(known, name) {
					known = append(known, name)
				}
			}
		}
		for _, child := range n.Children {
			visit(child)
		}
	}
	visit(model.Node)
	return known
}
