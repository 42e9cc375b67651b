/** Headers of the gateway's own answers. */

/**
 * Header with an error code. The gateway sets this header only in its own answers, if the same request would fail again: for example
 * after several failed tries to connect to the provider, or with `internal_error` after a fault of the service. The gateway removes a header with this name from the answers of providers.
 */
export const gatewayErrorHeader = 'x-runyard-error-code';

/** Header of the gateway's answer to a push that waits for the approval of a person. The same push can be sent again. */
export const waitingHeader = 'x-runyard-approval';
