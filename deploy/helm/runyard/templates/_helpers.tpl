{{- define "runyard.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "runyard.labels" -}}
app.kubernetes.io/name: runyard
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "runyard.selector" -}}
app.kubernetes.io/name: runyard
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "runyard.image" -}}
{{ .root.Values.image.registry }}{{ .name }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- end -}}

{{- define "runyard.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "runyard.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "runyard.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "runyard.plainEnv" -}}
{{- range $name, $value := . }}
- {name: {{ $name }}, value: {{ $value | toString | quote }}}
{{- end }}
{{- end -}}

{{- /* Peers of an egress rule: everything but the metadata addresses of clouds. */ -}}
{{- define "runyard.outside" -}}
- ipBlock:
    cidr: 0.0.0.0/0
    {{- if not .Values.unsafe.allowCloudMetadata }}
    except: [169.254.0.0/16, 168.63.129.16/32, 100.100.100.200/32]
    {{- end }}
- ipBlock:
    cidr: ::/0
    {{- if not .Values.unsafe.allowCloudMetadata }}
    except: ['fd00:ec2::254/128', 'fd20:ce::254/128']
    {{- end }}
- namespaceSelector: {}
{{- end -}}

{{- /* Handler of the RuntimeClass of the runs. Without a cluster (helm template), or if it has no such class: the name of the class. */ -}}
{{- define "runyard.runtimeHandler" -}}
{{- (lookup "node.k8s.io/v1" "RuntimeClass" "" .Values.runs.runtimeClassName).handler | default .Values.runs.runtimeClassName -}}
{{- end -}}

{{- /* Refuses values that take a protection away without saying so. */ -}}
{{- define "runyard.check" -}}
{{- if .Values.worker.enabled -}}
{{- if not (or .Values.runs.runtimeClassName .Values.unsafe.shareKernelOfNodes) -}}
{{- fail "runs.runtimeClassName: name a RuntimeClass with a kernel for each pod, such as one of gVisor or Kata, or set unsafe.shareKernelOfNodes=true" -}}
{{- end -}}
{{- if and .Values.runs.runtimeClassName (not .Values.unsafe.shareKernelOfNodes) -}}
{{- $handler := include "runyard.runtimeHandler" . -}}
{{- if regexMatch "^(runc|crun|youki|nvidia(-cdi|-legacy)?)$" $handler -}}
{{- fail (printf "runs.runtimeClassName: pods of the RuntimeClass %s have the handler %s, which shares the kernel of the node; name a RuntimeClass of gVisor or Kata, or set unsafe.shareKernelOfNodes=true" .Values.runs.runtimeClassName $handler) -}}
{{- end -}}
{{- end -}}
{{- if eq .Values.runs.namespace .Release.Namespace -}}
{{- fail "runs.namespace: must be another namespace than that of the release, because pods of runs could mount its Secrets" -}}
{{- end -}}
{{- end -}}
{{- end -}}
