// measure runs commands in turns and says what each whole process cost. It reads a plan from standard input and writes
// one JSON object to standard output. Go, because the kernel gives a child's CPU time and peak memory only to the
// wait4 call that reaps it, and neither Node nor Bun nor a shell hands all three numbers on.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

type plan struct {
	Warmups  int       `json:"warmups"`
	Runs     int       `json:"runs"`
	PauseMs  int       `json:"pauseMs"`
	Commands []command `json:"commands"`
}

type command struct {
	Name string   `json:"name"`
	Argv []string `json:"argv"`
}

type sample struct {
	WallNs     int64 `json:"wallNs"`
	CPUNs      int64 `json:"cpuNs"`
	MaxRssKiB  int64 `json:"maxRssKiB"`
	ExitStatus int   `json:"exitStatus"`
}

type result struct {
	Name    string   `json:"name"`
	Samples []sample `json:"samples"`
	// What the last run printed, so that a wrong number can be traced to a run that did not do its work.
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
}

type report struct {
	CPUs    int      `json:"cpus"`
	Results []result `json:"results"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func run() error {
	var p plan
	if err := json.NewDecoder(os.Stdin).Decode(&p); err != nil {
		return err
	}
	out := report{CPUs: runtime.NumCPU(), Results: make([]result, len(p.Commands))}
	for round := 0; round < p.Warmups+p.Runs; round++ {
		for i := range p.Commands {
			// A different command begins each round: what runs after a pause is not always the same one.
			at := (i + round) % len(p.Commands)
			time.Sleep(time.Duration(p.PauseMs) * time.Millisecond)
			s, stdout, stderr, err := once(p.Commands[at].Argv)
			if err != nil {
				return fmt.Errorf("%s: %w", p.Commands[at].Name, err)
			}
			r := &out.Results[at]
			r.Name, r.Stdout, r.Stderr = p.Commands[at].Name, stdout, stderr
			if round >= p.Warmups {
				r.Samples = append(r.Samples, s)
			}
		}
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

// once measures from before the fork until the process is reaped. The peak memory can't read lower than this program's
// own (about 6 MiB): the kernel counts the memory a child shares with its parent until it executes.
func once(argv []string) (sample, string, string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	started := time.Now()
	err := cmd.Run()
	wall := time.Since(started)
	if _, ended := err.(*exec.ExitError); err != nil && !ended {
		return sample{}, "", "", err
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return sample{
		WallNs:     wall.Nanoseconds(),
		CPUNs:      usage.Utime.Nano() + usage.Stime.Nano(),
		MaxRssKiB:  usage.Maxrss,
		ExitStatus: cmd.ProcessState.ExitCode(),
	}, stdout.String(), stderr.String(), nil
}
