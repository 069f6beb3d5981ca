package fault

import "github.com/koboshi-dev/koboshi/internal/trace"

// conflicts says whether a write would be refused if somebody else wrote the
// object just before. Only then is it a conflict; a write without a precondition
// goes through, as it should, and the foreign write is all that happened.
func conflicts(call *trace.Call) (bool, string) {
	if call.Endpoint != "" {
		return false, "there are no resource versions at an endpoint"
	}
	switch call.Verb {
	case "update":
		return carries(call, "the update names no resourceVersion: it goes through whoever wrote before", objectVersion)
	case "patch":
		return carries(call, "the patch names no resourceVersion: it goes through whoever wrote before", objectVersion)
	case "delete":
		return carries(call, "the delete has no precondition on the resourceVersion: it goes through whoever wrote before", deleteVersion)
	case "create":
		return false, "there is nothing yet that somebody else could write"
	}
	return false, "the request names no resourceVersion"
}

// carries reads the body and asks it.
func carries(call *trace.Call, why string, version func(map[string]any) string) (bool, string) {
	body, err := call.RequestObject()
	switch {
	case err != nil:
		return false, "the body of the request could not be read: whether it names a resourceVersion is not known"
	case version(body) == "":
		return false, why
	}
	return true, ""
}

// objectVersion is that of an object, or of a patch of any kind. In a JSON patch it
// is a test of /metadata/resourceVersion, or its replacement: the server compares
// that with what is stored.
func objectVersion(body map[string]any) string {
	ops, _ := body[trace.PatchKey].([]any)
	for _, v := range ops {
		op, _ := v.(map[string]any)
		if value, ok := op["value"].(string); ok && op["path"] == "/metadata/resourceVersion" {
			return value
		}
	}
	metadata, _ := body["metadata"].(map[string]any)
	version, _ := metadata["resourceVersion"].(string)
	return version
}

// deleteVersion is of the precondition. One on the UID alone is none here: the
// foreign write leaves the UID as it is.
func deleteVersion(options map[string]any) string {
	preconditions, _ := options["preconditions"].(map[string]any)
	version, _ := preconditions["resourceVersion"].(string)
	return version
}
