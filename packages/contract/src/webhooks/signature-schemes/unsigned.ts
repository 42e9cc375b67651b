import type { SignatureScheme } from './scheme.ts';

/** The members of a scheme for a sender that does not sign with a secret. */
export const unsigned = {
  headers: [],
  algorithm: 'none',
  encoding: 'hex',
  prefix: '',
  signed: [],
  key: 'text',
} as const satisfies SignatureScheme;

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

/** https://learn.microsoft.com/graph/change-notifications-delivery-webhooks#notificationurl-validation */
export const microsoftGraph: SignatureScheme = { ...unsigned, handshake: { query: 'validationToken' } };

/**
 * https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html. SNS signs with a certificate whose address is in the
 * message itself. The service does not fetch this certificate, and verifies the sender by a token instead.
 */
export const sns: SignatureScheme = {
  ...unsigned,
  eventHeader: 'x-amz-sns-message-type',
  idMember: 'MessageId',
  otherHeaders: ['x-amz-sns-message-id', 'x-amz-sns-topic-arn'],
  jsonMembers: ['Message'],
  handshake: {
    when: ['Type', 'SubscriptionConfirmation'],
    confirm:
      'Amazon SNS asks whether this URL wants its messages. Compare TopicArn in the payload with your topic, then open SubscribeURL of the payload, or run aws sns confirm-subscription with its Token',
  },
};
