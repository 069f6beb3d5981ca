package site

import (
	"net/http"
	"path"
	"strings"
)

// assetTypes holds the media types of authors' files. The map excludes files that a browser would
// run or apply (HTML, scripts, style sheets). The content security policy of the site trusts
// scripts from the site's own origin, so an author's file must never be served as a script.
var assetTypes = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
	".avif": "image/avif", ".ico": "image/x-icon", ".bmp": "image/bmp", ".svg": "image/svg+xml",
	".pdf": "application/pdf", ".zip": "application/zip", ".gz": "application/gzip", ".tgz": "application/gzip",
	".tar": "application/x-tar", ".woff": "font/woff", ".woff2": "font/woff2", ".ttf": "font/ttf", ".otf": "font/otf",
	".mp3": "audio/mpeg", ".ogg": "audio/ogg", ".wav": "audio/wav", ".mp4": "video/mp4", ".webm": "video/webm",
	".json": "application/json", ".csv": "text/csv; charset=utf-8",
}

// textAssets are shown as plain text.
var textAssets = map[string]bool{
	".txt": true, ".text": true, ".log": true, ".yaml": true, ".yml": true, ".toml": true, ".ini": true, ".conf": true,
	".cfg": true, ".env": true, ".sh": true, ".bash": true, ".go": true, ".py": true, ".rs": true, ".rb": true, ".java": true,
	".c": true, ".h": true, ".cc": true, ".cpp": true, ".hpp": true, ".ts": true, ".tsx": true, ".js": true, ".mjs": true,
	".jsx": true, ".css": true, ".sql": true, ".tf": true, ".proto": true, ".diff": true, ".patch": true, ".adoc": true,
	".rst": true, ".mod": true, ".sum": true, ".jsonl": true, ".tpl": true, ".tmpl": true, ".xml": true, ".mdx": true,
}

// documents holds the extensions of files that a browser would open as pages of the site.
var documents = map[string]bool{".html": true, ".htm": true, ".xhtml": true, ".xht": true, ".mht": true, ".mhtml": true, ".shtml": true}

// assetKind returns the kind of an author's file.
func assetKind(name string) kind {
	k := kind{status: http.StatusOK, policy: assetPolicy, cache: revalidate}
	ext := strings.ToLower(path.Ext(name))
	switch known := assetTypes[ext]; {
	case documents[ext]:
		k.contentType, k.disposition, k.compressible = "text/plain; charset=utf-8", "attachment", true
	case textAssets[ext], ext == "":
		k.contentType, k.compressible = "text/plain; charset=utf-8", true
	case known != "":
		k.contentType = known
		k.compressible = ext == ".svg" || ext == ".json" || ext == ".csv" || ext == ".bmp" || ext == ".ttf" || ext == ".otf"
	default:
		k.contentType, k.disposition = "application/octet-stream", "attachment"
	}
	if ext == ".pdf" {
		k.policy = pdfPolicy
	}
	return k
}
