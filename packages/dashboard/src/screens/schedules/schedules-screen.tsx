import { Page } from '../../frame/page.tsx';

export function SchedulesScreen() {
  return <Page title="SchedulesScreen">{null}</Page>;
}
