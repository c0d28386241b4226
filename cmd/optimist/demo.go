package main

type demoCmd struct {
	Once     bool   `help:"End after the table instead of serving on. Status 1 if anything was lost through optimist."`
	Upstream string `help:"Do it on this engine instead of one in memory. Uses an index of its own." env:"OPTIMIST_UPSTREAM" placeholder:"URL"`
}

// Help is the command's manual, beyond its flags.
func (demoCmd) Help() string {
	return `Sixteen workers of an application that knows nothing of versions read a document, change it, and write it back: first straight at the engine, then through optimist. The table shows how many of the acknowledged changes are gone. Then it goes on serving, and prints requests to try.`
}

// Run is written elsewhere: the command only hands over.
func (c *demoCmd) Run(*process) error {
	return usageError("optimist demo: not in this build")
}
