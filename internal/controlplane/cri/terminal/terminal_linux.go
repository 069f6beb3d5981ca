package terminal

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Open returns both ends of a new terminal in the calling thread's /dev/pts.
// Reading from the controlling end fails with EIO when no process has the other
// end open.
func Open() (controlling, terminal *os.File, err error) {
	controlling, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("opening a terminal: %w", err)
	}
	var peer uintptr
	err = control(controlling, func(fd int) (err error) {
		if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		// The terminal end is not opened by its name, because names differ
		// between mount namespaces.
		var errno syscall.Errno
		peer, _, errno = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
		if errno != 0 {
			return errno
		}
		return nil
	})
	if err != nil {
		_ = controlling.Close()
		return nil, nil, fmt.Errorf("opening a terminal: %w", err)
	}
	return controlling, os.NewFile(peer, "terminal"), nil
}

// Name returns the terminal's path in the namespace where it was opened.
func Name(controlling *os.File) (string, error) {
	var number int
	err := control(controlling, func(fd int) (err error) {
		number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("finding the terminal's name: %w", err)
	}
	return fmt.Sprintf("/dev/pts/%d", number), nil
}

// Resize sets the size of the window.
func Resize(controlling *os.File, columns, rows uint16) error {
	return control(controlling, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows})
	})
}

// control calls f with the file descriptor. Unlike File.Fd, it keeps the file
// non-blocking.
func control(file *os.File, f func(fd int) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = f(int(fd)) }); err != nil {
		return err
	}
	return failed
}
