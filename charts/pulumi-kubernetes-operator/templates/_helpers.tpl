{{/* Names and labels are those of the Go operator's chart, so that an upgrade from it changes objects in place. */}}

{{- define "operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "operator.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- default $full .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "operator.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "operator.serviceAccountName" -}}
{{- $own := ternary (include "operator.fullname" .) "default" .Values.serviceAccount.create }}
{{- default $own .Values.serviceAccount.name }}
{{- end }}

{{/* Values reused from a release of the Go operator may pin its image, which does not support this chart's arguments. */}}
{{- define "operator.image" -}}
{{- $tag := .Values.image.tag | toString }}
{{- if and (not .Values.image.digest) (hasSuffix "pulumi-kubernetes-operator" .Values.image.repository) (regexMatch "^v?[0-2]\\." $tag) }}
{{- fail (printf "image.tag %s is an image of the Go operator, which this chart cannot run. The value comes from the earlier release or from a values file. Remove it, or pass --set image.tag= to run %s." $tag .Chart.AppVersion) }}
{{- end }}
{{- $repository := printf "%s/%s" .Values.image.registry .Values.image.repository }}
{{- with .Values.image.digest -}}
{{ $repository }}@{{ . }}
{{- else -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{/* The watched namespaces as YAML: an empty list for all namespaces. */}}
{{- define "operator.namespaces" -}}
{{- if .Values.watchNamespaces }}
{{- .Values.watchNamespaces | uniq | toYaml }}
{{- else if and .Values.rbac.createRole (not .Values.rbac.createClusterRole) }}
{{- list .Release.Namespace | toYaml }}
{{- else -}}
[]
{{- end }}
{{- end }}

{{/* Generated facts: RBAC rules, ports and admission policies. */}}
{{- define "operator.facts" -}}
{{ .Files.Get "facts.yaml" }}
{{- end }}

{{- define "operator.subjects" -}}
- kind: ServiceAccount
  name: {{ include "operator.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{/* An integer from a number or a string; empty for an empty string. Helm parses large numbers as floats such as 1e+09. */}}
{{- define "operator.wholeNumber" -}}
{{- if kindIs "string" . }}{{ . }}{{ else if not (kindIs "invalid" .) }}{{ int64 . }}{{ end }}
{{- end }}

{{- define "webhook.fullname" -}}
{{ include "operator.fullname" . | trunc 54 | trimSuffix "-" }}-webhook
{{- end }}

{{/* The console's pods must not have the labels by which network policies and Services select the operator's. */}}
{{- define "console.fullname" -}}
{{ include "operator.fullname" . | trunc 55 | trimSuffix "-" }}-console
{{- end }}

{{- define "console.selectorLabels" -}}
app.kubernetes.io/name: {{ include "operator.name" . | trunc 55 | trimSuffix "-" }}-console
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "console.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "console.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* The names by which browsers reach the console, separated by commas. */}}
{{- define "console.hosts" -}}
{{- $console := .Values.console }}
{{- $routed := concat (ternary (list $console.ingress.host) (list) $console.ingress.enabled) (ternary ($console.httpRoute.hostnames | default list) (list) $console.httpRoute.enabled) }}
{{- $console.hosts | default $routed | uniq | join "," }}
{{- end }}
