import type { SignatureScheme } from './scheme.ts';
import { unsigned } from './unsigned.ts';

/** https://learn.microsoft.com/azure/event-grid/end-point-validation-event-grid-events-schema */
export const eventGrid: SignatureScheme = {
  ...unsigned,
  eventHeader: 'aeg-event-type',
  otherHeaders: ['aeg-subscription-name', 'aeg-delivery-count'],
  handshake: {
    when: ['0.eventType', 'Microsoft.EventGrid.SubscriptionValidationEvent'],
    value: '0.data.validationCode',
    answer: { validationResponse: '{value}' },
  },
};
