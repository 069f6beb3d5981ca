// Package picture makes screenshots small enough for a repository.
package picture

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"slices"
)

// Reduce encodes a PNG file again with its 256 most frequent colors. A screenshot with text then
// has about a third of the bytes.
func Reduce(file []byte) ([]byte, error) {
	shot, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	var small bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	err = encoder.Encode(&small, reduced(shot))
	return small.Bytes(), err
}

// reduced returns the picture with its 256 most frequent colors.
func reduced(shot image.Image) image.Image {
	counts := map[color.RGBA]int{}
	bounds := shot.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[color.RGBAModel.Convert(shot.At(x, y)).(color.RGBA)]++
		}
	}
	var frequent []color.RGBA
	for c := range counts {
		frequent = append(frequent, c)
	}
	slices.SortFunc(frequent, func(a, b color.RGBA) int { return counts[b] - counts[a] })
	var palette color.Palette
	for _, c := range frequent[:min(len(frequent), 256)] {
		palette = append(palette, c)
	}
	small := image.NewPaletted(bounds, palette)
	nearest := map[color.RGBA]uint8{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := color.RGBAModel.Convert(shot.At(x, y)).(color.RGBA)
			if _, known := nearest[c]; !known {
				nearest[c] = uint8(palette.Index(c))
			}
			small.SetColorIndex(x, y, nearest[c])
		}
	}
	return small
}
