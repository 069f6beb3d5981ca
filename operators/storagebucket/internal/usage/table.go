package usage

import (
	"context"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	usagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/usage/v1"
)

// columns are the columns of the table that kubectl shows. The figures are strings,
// because a truncated figure ends in a plus sign and a missing figure is a dash.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the StorageBucket."},
	{Name: "Bucket", Type: "string", Description: "Name of the bucket in the store."},
	{Name: "Store", Type: "string", Description: "ObjectStore that the bucket is in."},
	{Name: "Objects", Type: "string", Description: "Number of objects; a plus sign means that there are at least that many."},
	{Name: "Size", Type: "string", Description: "Total size of the objects."},
	{Name: "Measured", Type: "string", Description: "When the objects were counted."},
	{Name: "Reason", Type: "string", Description: "Why the objects could not be counted."},
	{Name: "Message", Type: "string", Priority: 1, Description: "Why the objects could not be counted, and what to do."},
}

// ConvertToTable implements rest.TableConvertor.
func (*Buckets) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		table.ColumnDefinitions = columns
	}
	switch object := object.(type) {
	case *usagev1.BucketUsage:
		table.Rows = []metav1.TableRow{row(object)}
	case *usagev1.BucketUsageList:
		table.ListMeta = object.ListMeta
		table.Rows = make([]metav1.TableRow, len(object.Items))
		for i := range object.Items {
			table.Rows[i] = row(&object.Items[i])
		}
	default:
		return nil, fmt.Errorf("a %T cannot be printed as a table of bucketusages", object)
	}
	return table, nil
}

func row(u *usagev1.BucketUsage) metav1.TableRow {
	objects, size := "-", "-"
	if u.Objects != nil && u.Bytes != nil {
		objects, size = strconv.FormatInt(*u.Objects, 10), humanSize(*u.Bytes)
		if u.Truncated {
			objects, size = objects+"+", size+"+"
		}
	}
	return metav1.TableRow{
		Cells: []any{u.Name, u.BucketName, u.Store, objects, size,
			u.MeasuredAt.UTC().Format(time.RFC3339), u.Reason, u.Message},
		Object: runtime.RawExtension{Object: u},
	}
}

// humanSize formats a size with the binary suffixes of Kubernetes quantities, rounded
// to three digits or to an integer.
func humanSize(bytes int64) string {
	if bytes < 1024 {
		return strconv.FormatInt(bytes, 10)
	}
	value, unit := float64(bytes)/1024, 0
	const units = "KMGTPE"
	// A value that would be printed as 1024 is printed in the next unit.
	for value >= 1023.5 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	digits := 0
	switch {
	case value < 9.995:
		digits = 2
	case value < 99.95:
		digits = 1
	}
	return strconv.FormatFloat(value, 'f', digits, 64) + units[unit:unit+1] + "i"
}
