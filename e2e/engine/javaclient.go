package engine

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
)

// PrepareJavaClient fetches and builds the program that JavaClient runs, unless it is there, and returns its folder.
func PrepareJavaClient(ctx context.Context) (string, error) { return Prepare(ctx, client) }

// JavaClient has the official Java client of Elasticsearch do what the arguments say, and returns what that prints: see BulkClient.java.
// The first call on a machine fetches the jars.
func JavaClient(ctx context.Context, args ...string) (string, error) {
	kit, err := prepare(ctx, client)
	if err != nil {
		return "", err
	}
	java := []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", kit.classPath(), client.recipe().main}
	cmd := exec.CommandContext(ctx, kit.jdk.tool("java"), append(java, args...)...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("the Java client: %w\n%s", err, problems.Bytes())
	}
	return out.String(), nil
}
