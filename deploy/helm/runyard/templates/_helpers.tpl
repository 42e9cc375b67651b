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
{{- with .Values.security.userId }}
runAsUser: {{ . }}
{{- end }}
{{- with .Values.security.groupId }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
{{- end }}
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

{{- /* Nodes and zones over which pods are spread. */ -}}
{{- define "runyard.spread" -}}
{{- $labels := include "runyard.selector" . -}}
{{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- maxSkew: 1
  topologyKey: {{ $key }}
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {{- $labels | nindent 6 }}
{{- end }}
{{- end -}}

{{- /* Environment, mounts and volumes of the certificates of own authorities. */ -}}
{{- define "runyard.caEnv" -}}
{{- if .Values.ca.existingConfigMap }}
- {name: RUNYARD_CA_FILE, value: /ca/ca.pem}
{{- end }}
{{- end -}}
{{- define "runyard.caMount" -}}
{{- if .Values.ca.existingConfigMap }}
- {name: ca, mountPath: /ca, readOnly: true}
{{- end }}
{{- end -}}
{{- define "runyard.caVolume" -}}
{{- with .Values.ca }}
{{- if .existingConfigMap }}
- name: ca
  configMap:
    name: {{ .existingConfigMap }}
    items: [{key: {{ .key }}, path: ca.pem}]
{{- end }}
{{- end }}
{{- end -}}

{{- /* Settings of the service, which also its backups have. */ -}}
{{- define "runyard.serviceEnv" -}}
- {name: RUNYARD_BASE_URL, value: {{ .Values.baseUrl | quote }}}
- {name: RUNYARD_DATABASE_URL_FILE, value: /secrets/database/url}
- {name: RUNYARD_BOOTSTRAP_KEY_FILE, value: /secrets/installation/operator-key}
{{- if and .Values.worker.enabled (not .Values.worker.existingSecret) }}
- {name: RUNYARD_WORKER_KEY_FILE, value: /secrets/installation/worker-key}
{{- end }}
- {name: RUNYARD_SECRETS_KEY_FILE, value: /secrets/installation/secrets-key}
- {name: RUNYARD_BLOBS, value: {{ .Values.blobs.url | quote }}}
- {name: RUNYARD_BLOBS_DOWNLOADS, value: {{ .Values.blobs.downloads }}}
{{- with .Values.ingress.trustedProxies }}
- {name: RUNYARD_TRUSTED_PROXIES, value: {{ join "," . | quote }}}
{{- end }}
- {name: AWS_REGION, value: {{ .Values.blobs.region }}}
{{- with .Values.blobs.endpoint }}
- {name: AWS_ENDPOINT_URL_S3, value: {{ . | quote }}}
{{- end }}
{{- if .Values.blobs.existingSecret }}
- {name: AWS_SHARED_CREDENTIALS_FILE, value: /secrets/blobs/credentials}
{{- end }}
{{- if .Values.metrics.enabled }}
- {name: RUNYARD_METRICS_LISTEN, value: '[::]:{{ .Values.metrics.port }}'}
{{- if .Values.metrics.existingSecret }}
- {name: RUNYARD_METRICS_TOKEN_FILE, value: /secrets/metrics/token}
{{- end }}
{{- end }}
{{- range $setting, $from := .Values.service.secretEnv }}
- {name: {{ $setting }}_FILE, value: /secrets/settings/{{ $setting }}}
{{- end }}
{{- include "runyard.caEnv" . }}
{{- if .Values.signOn.existingSecret }}
- {name: RUNYARD_OIDC_FILE, value: /secrets/sign-on/sign-on.yaml}
{{- end }}
{{- include "runyard.plainEnv" .Values.service.env }}
{{- with .Values.service.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "runyard.serviceMounts" -}}
- {name: tmp, mountPath: /tmp}
- {name: secrets, mountPath: /secrets, readOnly: true}
{{- include "runyard.caMount" . }}
{{- with .Values.service.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "runyard.serviceVolumes" -}}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      - secret:
          name: {{ .Values.database.existingSecret }}
          items: [{key: {{ .Values.database.key }}, path: database/url}]
      - secret:
          name: {{ .Values.secrets.existingSecret }}
          items:
            - {key: {{ .Values.secrets.operatorKey }}, path: installation/operator-key}
            {{- if and .Values.worker.enabled (not .Values.worker.existingSecret) }}
            - {key: {{ .Values.secrets.workerKey }}, path: installation/worker-key}
            {{- end }}
            - {key: {{ .Values.secrets.secretsKey }}, path: installation/secrets-key}
      {{- if .Values.blobs.existingSecret }}
      - secret:
          name: {{ .Values.blobs.existingSecret }}
          items: [{key: {{ .Values.blobs.key }}, path: blobs/credentials}]
      {{- end }}
      {{- if and .Values.metrics.enabled .Values.metrics.existingSecret }}
      - secret:
          name: {{ .Values.metrics.existingSecret }}
          items: [{key: {{ .Values.metrics.key }}, path: metrics/token}]
      {{- end }}
      {{- range $setting, $from := .Values.service.secretEnv }}
      - secret:
          name: {{ $from.secret }}
          items: [{key: {{ $from.key }}, path: settings/{{ $setting }}}]
      {{- end }}
      {{- with .Values.signOn }}
      {{- if .existingSecret }}
      - secret:
          name: {{ .existingSecret }}
          items: [{key: {{ .key }}, path: sign-on/sign-on.yaml}]
      {{- end }}
      {{- end }}
{{- include "runyard.caVolume" . }}
{{- with .Values.service.extraVolumes }}
{{ toYaml . }}
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
