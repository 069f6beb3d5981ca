{{/* The prefix of all names: the release, and the chart if the release has another name. */}}
{{- define "[[ .Name ]].fullname" -}}
{{- if contains "[[ .Name ]]" .Release.Name -}}
{{- .Release.Name | trunc [[ .Most ]] | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-[[ .Name ]]" .Release.Name | trunc [[ .Most ]] | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "[[ .Name ]].chart" -}}
{{- printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The image for which the chart was made, unless the values name another version. */}}
{{- define "[[ .Name ]].image" -}}
{{- if or .Values.image.tag .Values.image.digest -}}
{{ .Values.image.repository }}{{ with .Values.image.tag }}:{{ . }}{{ end }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- else -}}
{{ .Values.image.repository }}[[ .Built ]]
{{- end -}}
{{- end -}}
