package v1

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Limits of a response. The API server passes on only 4,096 characters of warnings, and
// people do not read long lists of errors.
const (
	mostErrors      = 50
	mostWarnings    = 20
	longestWarning  = 200
	warningsEllipse = "…"
)

// findings collects errors and warnings about an object.
type findings struct {
	errors field.ErrorList
	warned []string
}

func (f *findings) refuse(errors ...*field.Error) {
	f.errors = append(f.errors, errors...)
}

func (f *findings) warn(at *field.Path, message string) {
	f.warned = append(f.warned, at.String()+": "+message)
}

// told returns the errors, limited to a readable number.
func (f *findings) told() field.ErrorList {
	if len(f.errors) <= mostErrors {
		return f.errors
	}
	more := field.Invalid(field.NewPath("spec"), field.OmitValueType{}, fmt.Sprintf("and %d more", len(f.errors)-mostErrors))
	return append(f.errors[:mostErrors:mostErrors], more)
}

func (f *findings) warnings() admission.Warnings {
	if len(f.warned) == 0 {
		return nil
	}
	shown := f.warned[:min(len(f.warned), mostWarnings)]
	warnings := make(admission.Warnings, 0, len(shown)+1)
	for _, text := range shown {
		warnings = append(warnings, short(text))
	}
	if more := len(f.warned) - len(shown); more > 0 {
		warnings = append(warnings, fmt.Sprintf("and %d more", more))
	}
	return warnings
}

// short shortens a warning so that it fits into an HTTP header.
func short(text string) string {
	text = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "\uFFFD"))
	runes := []rune(text)
	if len(runes) <= longestWarning {
		return text
	}
	return string(runes[:longestWarning-1]) + warningsEllipse
}
