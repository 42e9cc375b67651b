import type { SignatureScheme } from './scheme.ts';
import { unsigned } from './unsigned.ts';

/** https://learn.microsoft.com/graph/change-notifications-delivery-webhooks#notificationurl-validation */
export const microsoftGraph: SignatureScheme = { ...unsigned, handshake: { query: 'validationToken' } };
