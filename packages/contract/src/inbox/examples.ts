/** Examples of the operations on the inbox. */
import { type Example, exampleIds, exampleTimes } from '../wire/example.ts';

const uid = exampleIds.NOTIFICATION_UID;
const notification = {
  notification_uid: uid,
  factory_uid: null,
  factory_task_uid: null,
  kind: 'answer_question',
  stage: null,
  title: 'Upgrade the payment library',
  description: 'Which version?',
  is_read: false,
  recipients: [{ uid: exampleIds.USER_UID }],
  created_at: exampleTimes.created,
  run_id: exampleIds.RUN_ID,
  questions: [{ id: 'q1', question: 'Which version?', type: 'single_select', options: ['4.2', '5.0'] }],
};
const marked: Example = {
  body: { notification_uids: [uid] },
  answer: { outcomes: [{ notification_uid: uid, ok: true }] },
};

export const inboxExamples = {
  listNotifications: {
    query: { kind: ['answer_question'] },
    answer: { items: [notification], page_info: { has_next_page: false } },
  },
  countNotifications: { answer: { unread: 1, total: 1 } },
  getNotification: { answer: notification },
  readNotifications: marked,
  unreadNotifications: marked,
  dismissNotifications: marked,
  restoreNotifications: marked,
} satisfies Record<string, Example>;
