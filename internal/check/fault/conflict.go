package fault

import "github.com/koboshi-dev/koboshi/internal/trace"

// conflicts returns "" if the server refuses the write after another client has written the
// object, and otherwise the reason why the server accepts the write. A write without a
// precondition rightly succeeds, so the only effect of the fault would be the write of the
// other client.
func conflicts(_ *Facts, _ Fault, call *trace.Call) string {
	if call.Endpoint != "" {
		return "an endpoint has no resource versions"
	}
	switch call.Verb {
	case "update":
		return carries(call, "the update names no resourceVersion, so no earlier write can make it fail", objectVersion)
	case "patch":
		return carries(call, "the patch names no resourceVersion, so no earlier write can make it fail", objectVersion)
	case "delete":
		return carries(call, "the delete has no precondition on the resourceVersion, so no earlier write can make it fail", deleteVersion)
	case "create":
		return "the object that another client would have to write does not exist yet"
	}
	return "the request names no resourceVersion"
}

// carries returns "" if the body contains a version, and otherwise the reason in why. If the body
// cannot be read, carries returns another reason instead.
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

// objectVersion returns the version in an object, or in a patch of any type. In a JSON
// patch, it is the value of an operation that tests or replaces /metadata/resourceVersion,
// because the server compares that value with the stored version.
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

// deleteVersion returns the version in the precondition of a deletion. A precondition on
// the UID alone does not count, because the write of the other client does not change the
// UID.
func deleteVersion(options map[string]any) string {
	preconditions, _ := options["preconditions"].(map[string]any)
	version, _ := preconditions["resourceVersion"].(string)
	return version
}
