//go:build race

package optimist

const underRaceDetector = true
