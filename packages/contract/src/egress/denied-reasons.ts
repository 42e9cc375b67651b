/** Reasons why the proxy of a sandbox denies a connection, each with a sentence for people. */
export const deniedReasons = {
  host_not_allowed: 'the environment does not allow this host and port in config.network',
  not_approved:
    'a person has to approve this connection, and has not decided yet: try again, or end the turn; the run continues with the answer',
  approval_denied: 'a person, or the approval policy of the run, denied this connection',
  operator: 'the operator of the worker does not allow this host (RUNYARD_EGRESS)',
  private_address:
    'the address is not public, and the operator of the worker does not allow it (RUNYARD_EGRESS_PRIVATE_NETWORKS)',
  invalid_host: 'this is not a host name or IP address with a port',
  host_mismatch: 'the Host header names another host than the request',
  not_tls: 'the connection does not begin with TLS, which port 443 needs',
  sni_missing: 'the TLS handshake does not name the host (SNI)',
  sni_mismatch: 'the TLS handshake names another host (SNI) than the request',
  ech: 'the TLS handshake hides a host name (Encrypted Client Hello)',
  bad_handshake: 'the TLS handshake cannot be read, or did not come in time',
  too_many_connections: 'the run has as many connections as it may',
  too_many_bytes: 'the run has sent and received as many bytes as it may',
} as const;
export type DeniedReason = keyof typeof deniedReasons;
