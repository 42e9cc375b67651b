import type { Domain, NightlyTask, RowRule } from '../../platform/domain.ts';
import { markEventStreams } from './stream-marks.ts';

/** `team-events.ts` needs the newest mark that is older than the window of team streams, but none before it. */
const oldMarks: RowRule = { table: 'event_stream_marks', isOver: `marked_at < now() - interval '30 days'` };

const markStreams: NightlyTask = {
  name: 'stream_marks',
  run: async (db) => {
    await markEventStreams(db);
    return { rows: 1, more: false };
  },
};

export const liveDomain: Domain = { name: 'live', retention: { rows: [oldMarks], nightly: [markStreams] } };
