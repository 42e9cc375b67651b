import { Page } from '../../frame/page.tsx';

export function UsageScreen() {
  return <Page title="UsageScreen">{null}</Page>;
}
