import { Page } from '../../frame/page.tsx';

export function ScheduleScreen() {
  return <Page title="ScheduleScreen">{null}</Page>;
}
