package fault

import "github.com/koboshi-dev/koboshi/internal/trace"

// conflicts returns why a write would not be refused if another client wrote the
// object just before. A write without a precondition goes through, as it should, and
// then only the other client's write has happened.
func conflicts(_ *Facts, _ Fault, call *trace.Call) string {
	if call.Endpoint != "" {
		return "there are no resource versions at an endpoint"
	}
	switch call.Verb {
	case "update":
		return carries(call, "the update names no resourceVersion: no earlier write can make it fail", objectVersion)
	case "patch":
		return carries(call, "the patch names no resourceVersion: no earlier write can make it fail", objectVersion)
	case "delete":
		return carries(call, "the delete has no precondition on the resourceVersion: no earlier write can make it fail", deleteVersion)
	case "create":
		return "there is no object yet that another client could write"
	}
	return "the request names no resourceVersion"
}

// carries returns why unless the body has a version.
func carries(call *trace.Call, why string, version func(map[string]any) string) string {
	body, err := call.RequestObject()
	switch {
	case err != nil:
		return "the body of the request could not be read, so it is unknown whether it names a resourceVersion"
	case version(body) == "":
		return why
	}
	return ""
}

// objectVersion returns the version in an object, or in a patch of any kind. In a
// JSON patch it is a test of /metadata/resourceVersion, or its replacement: the
// server compares that with what is stored.
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

// deleteVersion returns the version in the precondition. A precondition on the UID
// alone does not count: the other client's write leaves the UID as it is.
func deleteVersion(options map[string]any) string {
	preconditions, _ := options["preconditions"].(map[string]any)
	version, _ := preconditions["resourceVersion"].(string)
	return version
}
