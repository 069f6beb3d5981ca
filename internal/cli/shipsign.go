package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/koboshi-dev/koboshi/internal/ship"
	"github.com/koboshi-dev/koboshi/internal/ship/sign"
)

// passwordVariable is the variable in which cosign, too, looks for the password of a key.
const passwordVariable = "COSIGN_PASSWORD"

// key returns the key of --sign; nil means that there is none.
func (f *shipFlags) key(ctx context.Context, in io.Reader, messages io.Writer) (*sign.Key, error) {
	if f.sign == "" {
		return nil, nil
	}
	if f.archive != "" || len(f.load) > 0 {
		return nil, usageError{errors.New("--archive and --load use an archive of docker, which cannot hold signatures; omit --sign, or sign in a call with --push")}
	}
	key, err := sign.ReadKey(f.sign, func() ([]byte, error) { return password(ctx, f.sign, in, messages) })
	if err != nil {
		return nil, usageError{err}
	}
	return key, nil
}

// password returns the password of a key: that in the environment, or else the one that a person types.
// It removes the variable, because the programs that are started later do not need it.
func password(ctx context.Context, file string, in io.Reader, messages io.Writer) ([]byte, error) {
	if secret, ok := os.LookupEnv(passwordVariable); ok {
		return []byte(secret), os.Unsetenv(passwordVariable)
	}
	terminal, ok := in.(*os.File)
	if !ok || !isTerminal(terminal) {
		return nil, fmt.Errorf("set its password in %s, or call koboshi at a terminal", passwordVariable)
	}
	return typed(ctx, terminal, messages, "password of "+file+": ")
}

// typed asks for a secret at a terminal, which does not show it. If the context ends, the terminal is
// as it was before.
func typed(ctx context.Context, terminal *os.File, messages io.Writer, question string) ([]byte, error) {
	state, err := term.GetState(int(terminal.Fd()))
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(messages, question); err != nil {
		return nil, err
	}
	defer func() { _, _ = io.WriteString(messages, "\n") }()
	var secret []byte
	read := make(chan error, 1)
	go func() {
		var err error
		secret, err = term.ReadPassword(int(terminal.Fd()))
		read <- err
	}()
	select {
	case err := <-read:
		return secret, err
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), term.Restore(int(terminal.Fd()), state))
	}
}

// signed describes the signatures of a release in one line; the first is that of the index.
func signed(r *ship.Result) string {
	if len(r.Signatures) == 0 {
		return ""
	}
	return fmt.Sprintf("%s and %d more", r.Signatures[0], len(r.Signatures)-1)
}
