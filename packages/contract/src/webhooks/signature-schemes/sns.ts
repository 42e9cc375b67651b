import type { SignatureScheme } from './scheme.ts';
import { unsigned } from './unsigned.ts';

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
