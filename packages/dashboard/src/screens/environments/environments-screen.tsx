import { Page } from '../../frame/page.tsx';

export function EnvironmentsScreen() {
  return <Page title="EnvironmentsScreen">{null}</Page>;
}
