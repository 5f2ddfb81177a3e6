// Judges histories with Porcupine (https://github.com/anishathalye/porcupine), which shares nothing with
// Syros or with its own checker.
//
//	porcupine-check FILE..
//
// A history is a file with one JSON object per line, one for each operation, in any order:
//
//	{"client":3,"call":120,"return":456,"op":"append","key":7,"argument":"x","outcome":"ok","output":12}
//
// "call" and "return" are nanoseconds on one clock. "outcome" is "ok"; "error" for an increment of what is no
// integer; "unknown" for an update that may or may not take effect, at any time after its call; or "failed" for
// what never did. "output" is a text or null (get, getset), a number (append, incr) or a truth value (setnx,
// del). Histories in files whose names begin with "wrong-" were made wrong on purpose: they must be found to be.
//
// The exit status is 0 if every verdict is as it must be.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// One key is judged for so long at most; ordinary ones take milliseconds.
const patience = 60 * time.Second

// Longest line of a history, in bytes.
const lineMax = 1 << 20

type operation struct {
	Client   int         `json:"client"`
	Call     int64       `json:"call"`
	Return   int64       `json:"return"`
	Op       string      `json:"op"`
	Key      uint32      `json:"key"`
	Argument string      `json:"argument"`
	Outcome  string      `json:"outcome"`
	Output   interface{} `json:"output"`
}

// The value of one key.
type state struct {
	present bool
	value   string
}

// model is one key of a Redis server.
var model = porcupine.Model{
	Init: func() interface{} { return state{} },
	Step: func(before, input, _ interface{}) (bool, interface{}) {
		op := input.(operation)
		output, after := execute(before.(state), op)
		return op.Outcome == "unknown" || output == op.Output, after
	},
	DescribeOperation: func(input, _ interface{}) string {
		op := input.(operation)
		return fmt.Sprintf("%s %s -> %s %v", op.Op, op.Argument, op.Outcome, op.Output)
	},
}

// errorOutput stands for the error of an increment.
type errorOutput struct{}

func execute(s state, op operation) (output interface{}, after state) {
	var value interface{}
	if s.present {
		value = s.value
	}
	written := state{true, op.Argument}
	switch op.Op {
	case "get":
		return value, s
	case "set":
		return nil, written
	case "getset":
		return value, written
	case "setnx":
		if s.present {
			return false, s
		}
		return true, written
	case "del":
		return s.present, state{}
	case "append":
		written.value = s.value + op.Argument
		return json.Number(strconv.Itoa(len(written.value))), written
	case "incr":
		sum, ok := add(s, op.Argument)
		if !ok {
			return errorOutput{}, s
		}
		return json.Number(sum), state{true, sum}
	}
	panic("operations were checked when they were read")
}

func add(s state, argument string) (string, bool) {
	delta, err := strconv.ParseInt(argument, 10, 64)
	if err != nil {
		return "", false
	}
	var value int64
	if s.present {
		value, err = strconv.ParseInt(s.value, 10, 64)
		// Redis takes integers only as it writes them itself.
		if err != nil || strconv.FormatInt(value, 10) != s.value {
			return "", false
		}
	}
	if (delta > 0 && value > math.MaxInt64-delta) || (delta < 0 && value < math.MinInt64-delta) {
		return "", false
	}
	return strconv.FormatInt(value+delta, 10), true
}

func read(name string) (map[uint32][]porcupine.Operation, int, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 0, 4096), lineMax)
	keys := map[uint32][]porcupine.Operation{}
	number := 0
	for lines.Scan() {
		number++
		var op operation
		decoder := json.NewDecoder(strings.NewReader(lines.Text()))
		decoder.UseNumber()
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&op); err != nil {
			return nil, 0, fmt.Errorf("line %d: %v", number, err)
		}
		switch op.Op {
		case "get", "set", "getset", "setnx", "del", "append", "incr":
		default:
			return nil, 0, fmt.Errorf("line %d: unknown operation %q", number, op.Op)
		}
		switch op.Outcome {
		case "ok":
		case "error":
			op.Output = errorOutput{}
		case "unknown":
			op.Return = math.MaxInt64
		case "failed":
			continue
		default:
			return nil, 0, fmt.Errorf("line %d: unknown outcome %q", number, op.Outcome)
		}
		if op.Return < op.Call {
			return nil, 0, fmt.Errorf("line %d: it returned before it was called", number)
		}
		keys[op.Key] = append(keys[op.Key], porcupine.Operation{
			ClientId: op.Client, Input: op, Call: op.Call, Return: op.Return,
		})
	}
	if number == 0 && lines.Err() == nil {
		return nil, 0, fmt.Errorf("it is empty")
	}
	return keys, number, lines.Err()
}

// judge prints a verdict, and tells whether it is as it must be.
func judge(name string) bool {
	keys, count, err := read(name)
	if err != nil {
		fmt.Printf("%s: %v\n", name, err)
		return false
	}
	order := make([]uint32, 0, len(keys))
	for key := range keys {
		order = append(order, key)
	}
	sort.Slice(order, func(i, j int) bool { return order[i] < order[j] })
	verdict := porcupine.Ok
	var wrong []uint32
	for _, key := range order {
		switch porcupine.CheckOperationsTimeout(model, keys[key], patience) {
		case porcupine.Illegal:
			wrong = append(wrong, key)
			verdict = porcupine.Illegal
		case porcupine.Unknown:
			fmt.Printf("%s: key %d was not decided within %v\n", name, key, patience)
			if verdict == porcupine.Ok {
				verdict = porcupine.Unknown
			}
		}
	}
	expected := porcupine.Ok
	note := ""
	if strings.HasPrefix(filepath.Base(name), "wrong-") {
		expected, note = porcupine.Illegal, ", as it must not be"
		if verdict == porcupine.Illegal {
			note = ", as it was made"
		}
	}
	text := map[porcupine.CheckResult]string{
		porcupine.Ok: "linearizable", porcupine.Illegal: "NOT linearizable", porcupine.Unknown: "UNDECIDED",
	}
	if len(wrong) > 0 {
		note += fmt.Sprintf(": no order for key %d", wrong[0])
	}
	if len(wrong) > 1 {
		note += fmt.Sprintf(" and %d others", len(wrong)-1)
	}
	fmt.Printf("%s: %s%s (%d operations, %d keys)\n", name, text[verdict], note, count, len(keys))
	return verdict == expected
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: porcupine-check FILE..")
		os.Exit(2)
	}
	failed := 0
	for _, name := range os.Args[1:] {
		if !judge(name) {
			failed++
		}
	}
	fmt.Printf("%d passed, %d failed\n", len(os.Args)-1-failed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
