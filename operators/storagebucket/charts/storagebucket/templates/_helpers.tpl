{{/* The prefix of all names. */}}
{{- define "storagebucket.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 30 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 30 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 30 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "storagebucket.labels" -}}
app.kubernetes.io/name: storagebucket
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The labels that select the Pods of the manager. */}}
{{- define "storagebucket.selector" -}}
control-plane: controller-manager
app.kubernetes.io/name: storagebucket
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The labels that select the Pods of the usage server. */}}
{{- define "storagebucket.usageSelector" -}}
app.kubernetes.io/component: usage-server
app.kubernetes.io/name: storagebucket
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "storagebucket.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* Returns "--flag=value", or nothing if the value is null. Numbers are written without
     an exponent, because the programs do not accept 1e+06 as the value of a flag. */}}
{{- define "storagebucket.flag" -}}
{{- $flag := index . 0 -}}{{- $value := index . 1 -}}
{{- if kindIs "slice" $value -}}
{{- with $value }}
- {{ printf "--%s=%s" $flag (join "," .) | quote }}
{{- end -}}
{{- else if or (kindIs "float64" $value) (kindIs "int64" $value) (kindIs "int" $value) }}
- {{ printf "--%s=%s" $flag (toJson $value) | quote }}
{{- else if not (kindIs "invalid" $value) }}
- {{ printf "--%s=%v" $flag $value | quote }}
{{- end -}}
{{- end -}}

{{- define "storagebucket.podSecurityContext" -}}
runAsNonRoot: true
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "storagebucket.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop:
  - ALL
{{- end -}}

{{/* The name of the Secret with a certificate. cert-manager and the chart use different
     Secrets, because neither of them would stop managing a shared Secret. */}}
{{- define "storagebucket.certSecret" -}}
{{- $root := index . 0 -}}{{- $what := index . 1 -}}
{{ include "storagebucket.fullname" $root }}-{{ $what }}-{{ ternary "server-cert" "self-signed" $root.Values.certManager.enabled }}
{{- end -}}

{{- define "storagebucket.dnsNames" -}}
{{- $root := index . 0 -}}{{- $service := index . 1 -}}
- {{ $service }}.{{ $root.Release.Namespace }}.svc
- {{ $service }}.{{ $root.Release.Namespace }}.svc.cluster.local
{{- end -}}

{{/* The data of a Secret with a certificate that the chart itself creates. If the Secret
     is already in the cluster, its data is returned, otherwise a new certificate. Call this
     only once for each Secret, because each call may create a new certificate. The values
     are in base64, with the same keys as in the Secret. */}}
{{- define "storagebucket.selfSigned" -}}
{{- $root := index . 0 -}}{{- $what := index . 1 -}}{{- $service := index . 2 -}}
{{- $found := lookup "v1" "Secret" $root.Release.Namespace (include "storagebucket.certSecret" (list $root $what)) -}}
{{- $data := dict -}}
{{- if $found -}}{{- $data = $found.data | default dict -}}{{- end -}}
{{- if and (hasKey $data "ca.crt") (hasKey $data "tls.crt") (hasKey $data "tls.key") -}}
{{- pick $data "ca.crt" "tls.crt" "tls.key" | toYaml -}}
{{- else -}}
{{- $names := include "storagebucket.dnsNames" (list $root $service) | fromYamlArray -}}
{{- $ca := genCA (printf "%s %s" (include "storagebucket.fullname" $root) $what) 3650 -}}
{{- $cert := genSignedCert (first $names) nil $names 3650 $ca -}}
{{- dict "ca.crt" (b64enc $ca.Cert) "tls.crt" (b64enc $cert.Cert) "tls.key" (b64enc $cert.Key) | toYaml -}}
{{- end -}}
{{- end -}}

{{/* The Secret with a certificate that the chart itself creates. */}}
{{- define "storagebucket.selfSignedSecret" -}}
{{- $root := index . 0 -}}{{- $what := index . 1 -}}{{- $data := index . 2 -}}
apiVersion: v1
kind: Secret
metadata:
  name: {{ include "storagebucket.certSecret" (list $root $what) }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "storagebucket.labels" $root | nindent 4 }}
type: kubernetes.io/tls
data:
  {{- toYaml $data | nindent 2 }}
{{- end -}}

{{/* The Certificate from which cert-manager creates the Secret. */}}
{{- define "storagebucket.certificate" -}}
{{- $root := index . 0 -}}{{- $what := index . 1 -}}{{- $name := index . 2 -}}{{- $service := index . 3 -}}
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ include "storagebucket.fullname" $root }}-{{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "storagebucket.labels" $root | nindent 4 }}
spec:
  dnsNames:
  {{- include "storagebucket.dnsNames" (list $root $service) | nindent 2 }}
  issuerRef:
    {{- if $root.Values.certManager.issuerRef }}
    {{- toYaml $root.Values.certManager.issuerRef | nindent 4 }}
    {{- else }}
    kind: Issuer
    name: {{ include "storagebucket.fullname" $root }}-selfsigned-issuer
    {{- end }}
  privateKey:
    algorithm: ECDSA
    rotationPolicy: Always
  secretName: {{ include "storagebucket.certSecret" (list $root $what) }}
{{- end -}}

{{/* Binds a role to the manager. The arguments are the kind and name of the binding, the
     kind and name of the role, and the namespace, which is "" for a cluster-wide binding. */}}
{{- define "storagebucket.binding" }}
{{- $root := index . 0 -}}{{- $kind := index . 1 -}}{{- $binding := index . 2 -}}{{- $roleKind := index . 3 -}}{{- $role := index . 4 -}}{{- $namespace := index . 5 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ include "storagebucket.fullname" $root }}-{{ $binding }}
  {{- with $namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "storagebucket.labels" $root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $roleKind }}
  name: {{ include "storagebucket.fullname" $root }}-{{ $role }}
subjects:
- kind: ServiceAccount
  name: {{ include "storagebucket.fullname" $root }}-controller-manager
  namespace: {{ $root.Release.Namespace }}
{{- end }}
