package search

import (
	"strings"
	"unicode/utf8"
)

// foreign gives the words of other languages for the English words (several are
// separated by commas) that tools use: Chinese (simplified; the traditional
// form where it differs much), Japanese, Korean, Russian, Spanish, German, French, Portuguese, Arabic.
// Dense scripts match inside a run, the longest first; Russian by its stem;
// Latin words whole, without accents, or without an English plural. Words that
// English spells the same with another meaning are left out.
var foreign = []struct{ english, words string }{
	// acts
	{"read", "读取 阅读 讀取 閱讀 読む 読み込 読み取 読ん 読み 읽 прочитать читать чтение прочитай прочти leer lee lectura lesen auslesen lire lis lecture ler leia leitura قراءة اقرأ"},
	{"write", "写入 编写 撰写 寫入 写 書き込 書く 書い 쓰기 작성 записать запиши напиши написать запись escribir escribe schreiben schreibe ecrire ecris escrever escreva كتابة اكتب"},
	{"create", "创建 新建 建立 创作 創建 作成 作る 作っ 新規 만들 생성 создать создай создание crear crea creacion erstellen erstelle anlegen erzeugen creer cree creation criar crie criacao إنشاء انشئ"},
	{"generate", "生成 产生 制作 生成する генерировать сгенерировать сгенерируй generar genera generieren generiere generer genere gerar gere توليد"},
	{"add", "添加 新增 增加 加入 追加 추가 добавить добавь добавление anadir agregar agrega anade hinzufugen fuge ajouter ajoute adicionar adicione إضافة أضف"},
	{"delete", "删除 刪除 移除 清除 去掉 削除 消す 消し 삭제 удалить удали удаление borrar borra eliminar elimina loschen losche entfernen supprimer supprime effacer excluir apagar apague حذف احذف"},
	{"get", "获取 取得 得到 获得 獲取 拿到 取っ 가져오 얻 получить получи получение obtener obten conseguir abrufen holen obtenir recuperer obter obtenha الحصول احصل"},
	{"show", "显示 展示 查看 顯示 看看 表示 見せ 보여 표시 показать покажи mostrar muestra zeigen zeige anzeigen afficher affiche montrer montre mostre عرض اعرض"},
	{"list", "列出 列表 清单 清單 一覧 リスト 목록 список перечислить перечисли listar lista auflisten liste listez lister قائمة"},
	{"search", "搜索 搜寻 搜尋 查找 检索 搜一下 検索 探す 探し 調べ 검색 찾 найти найди поиск искать buscar busca busque suchen suche finden finde chercher cherche rechercher trouver trouve procurar pesquisar pesquise بحث ابحث"},
	{"query", "查询 查詢 查一下 照会 問い合わせ クエリ 조회 запрос consultar consulta abfragen abfrage requete"},
	{"update", "更新 修改 编辑 变更 更改 編集 変更 修正 업데이트 수정 변경 обновить обнови изменить измени редактировать actualizar actualiza modificar editar edita aktualisieren aktualisiere andern bearbeiten modifier mettre atualizar atualize تحديث تعديل"},
	{"replace", "替换 替換 置換 置き換え 바꾸 заменить замени reemplazar ersetzen remplacer substituir"},
	{"set", "设置 设定 設定 설정 установить установи настроить configurar einstellen definir"},
	{"send", "发送 發送 寄 发给 送信 送る 送っ 보내 전송 отправить отправь послать enviar envia envie senden sende schicken schicke envoyer envoie إرسال ارسل"},
	{"publish", "发布 發布 发表 公開 投稿 게시 опубликовать publicar veroffentlichen publier"},
	{"save", "保存 存储 储存 存到 存入 儲存 저장 сохранить сохрани guardar guarda speichern speichere enregistrer enregistre sauvegarder salvar salve حفظ احفظ"},
	{"download", "下载 下載 ダウンロード 다운로드 скачать скачай загрузить descargar descarga herunterladen telecharger telecharge baixar baixe تحميل تنزيل"},
	{"upload", "上传 上傳 アップロード 업로드 выгрузить subir sube hochladen televerser رفع"},
	{"open", "打开 打開 開く 開い 열 открыть открой abrir abre offnen offne ouvrir ouvre abra افتح فتح"},
	{"close", "关闭 關閉 閉じ 닫 закрыть закрой cerrar cierra schliessen fermer ferme fechar إغلاق"},
	{"run,execute", "运行 执行 運行 執行 実行 실행 запустить запусти выполнить выполни ejecutar ejecuta ausfuhren executer execute executar تشغيل تنفيذ"},
	{"start", "启动 开始 啟動 開始 起動 시작 начать iniciar inicia starten demarrer بدء"},
	{"stop", "停止 终止 終止 중지 остановить останови detener parar stoppen beenden arreter إيقاف"},
	{"move", "移动 移動 移到 이동 переместить перемести mueve verschieben verschiebe deplacer deplace نقل"},
	{"rename", "重命名 改名 名前を変更 переименовать переименуй renombrar umbenennen renommer renomear"},
	{"copy", "复制 拷贝 複製 コピー 복사 скопировать копировать скопируй copiar copia kopieren kopiere copier نسخ"},
	{"merge", "合并 合併 結合 병합 объединить объедини combinar fusionar zusammenfuhren fusionner دمج"},
	{"split", "拆分 分割 分离 나누 разделить dividir aufteilen teilen diviser"},
	{"compare", "比较 对比 比較 比べ 비교 сравнить сравни comparar compara vergleichen vergleiche comparer مقارنة"},
	{"convert", "转换 转化 换算 转为 转成 轉換 変換 換算 변환 преобразовать конвертировать конвертируй конвертация convertir convierte umwandeln konvertieren umrechnen convertir converter converta تحويل"},
	{"calculate", "计算 計算 算一下 계산 вычислить посчитать посчитай рассчитать calcular calcula berechnen berechne calculer calcule calcule حساب احسب"},
	{"analyze", "分析 解析 분석 анализ проанализировать проанализируй analizar analiza analisis analysieren analysiere analyser analisar analise تحليل"},
	{"summarize,summary", "总结 摘要 概括 概述 汇总 總結 要約 まとめ 요약 обобщить резюмировать резюме краткое resumir resumen zusammenfassen zusammenfassung resumer ملخص تلخيص"},
	{"translate", "翻译 翻譯 翻訳 번역 перевести переведи перевод traducir traduce ubersetzen ubersetze traduire traduis traduzir ترجمة ترجم"},
	{"check", "检查 检测 查验 檢查 確認 チェック 확인 проверить проверь проверка comprobar verificar verifica prufen prufe uberprufen verifier verifie تحقق"},
	{"monitor", "监控 监测 監控 監視 モニタ 모니터 мониторинг следить monitorear uberwachen surveiller"},
	{"recommend", "推荐 建议 推薦 おすすめ 薦め 추천 рекомендовать посоветуй порекомендуй recomendar recomienda empfehlen empfiehl recommander recommande recomende توصية"},
	{"plan", "规划 计划 安排 規劃 計画 계획 план спланировать спланируй planificar planea planen planifier planejar خطة"},
	{"draw", "绘制 画 繪製 描く 描画 描い 그리 нарисовать нарисуй dibujar dibuja zeichnen zeichne dessiner dessine desenhar رسم"},
	{"chart", "图表 柱状图 折线图 饼图 條形圖 圖表 グラフ チャート 차트 그래프 диаграмма график grafico diagramm graphique مخطط"},
	{"extract", "提取 抽取 抓取 抽出 추출 извлечь извлеки extraer extrae extrahieren extraire extrair استخراج"},
	{"book,reserve", "预订 预定 订票 預訂 予約 예약 забронировать бронирование reservar reserva buchen buche reserver حجز"},
	{"buy", "购买 买 購買 購入 買う 買い 사 구매 купить купи comprar compra kaufen kaufe acheter achete شراء"},
	{"pay,payment", "支付 付款 缴费 支払 決済 결제 지불 оплатить оплата платеж pagar pago bezahlen zahlung payer paiement pagamento دفع"},
	{"navigate", "导航 導航 ナビ 내비게이션 навигация navegar navigieren naviguer"},
	{"click", "点击 點擊 クリック 클릭 нажать нажми клик clic klicken cliquer"},
	{"fill,input", "填写 输入 輸入 入力 입력 ввести заполнить introducir rellenar eingeben ausfullen saisir remplir"},
	{"screenshot", "截图 截屏 截圖 スクリーンショット 스크린샷 скриншот снимок captura bildschirmfoto capture"},
	{"install", "安装 安裝 インストール 설치 установить instalar installieren installer"},
	{"deploy", "部署 デプロイ 배포 развернуть desplegar bereitstellen deployer"},
	{"test", "测试 測試 テスト 테스트 тест тестировать probar prueba testen tester"},
	{"count", "统计 计数 統計 数える 세 посчитать количество contar zahlen compter"},
	{"compress", "压缩 壓縮 圧縮 압축 сжать comprimir komprimieren compresser"},
	{"encrypt", "加密 暗号化 암호화 зашифровать cifrar verschlusseln chiffrer"},
	{"identify,recognize", "识别 識別 認識 인식 распознать reconocer erkennen reconnaitre"},
	{"explain", "解释 说明 解釋 説明 설명 объяснить объясни explicar explica erklaren expliquer"},
	{"random", "随机 隨機 ランダム 乱数 무작위 랜덤 случайный случайное aleatorio zufallig aleatoire"},
	// things of computing
	{"file", "文件 档案 檔案 ファイル 파일 файл archivo fichero datei dateien fichier arquivo ملف ملفات"},
	{"directory,folder", "目录 文件夹 資料夾 目錄 フォルダ ディレクトリ 폴더 디렉터리 папка каталог директория carpeta directorio ordner verzeichnis dossier repertoire مجلد"},
	{"document", "文档 文書 ドキュメント 문서 документ documento dokument dokumente مستند وثيقة"},
	{"text", "文本 文字 テキスト 텍스트 текст texto texte نص"},
	{"line", "行号 第几行 строка linea zeile ligne linha"},
	{"table", "表格 テーブル 表 표 таблица tabla tabelle tableau tabela جدول"},
	{"excel,spreadsheet", "电子表格 工作表 工作簿 試算表 スプレッドシート エクセル 엑셀 스프레드시트 эксель hoja planilla tabellenkalkulation feuille planilha"},
	{"presentation,powerpoint,slide", "演示文稿 幻灯片 簡報 スライド プレゼン 프레젠테이션 슬라이드 презентация слайд presentacion diapositiva prasentation folie diaporama apresentacao عرض تقديمي"},
	{"image", "图片 图像 照片 圖片 圖像 画像 写真 이미지 사진 изображение картинка фото imagen imagenes foto bild bilder image imagem صورة"},
	{"video", "视频 影片 視頻 動画 ビデオ 영상 동영상 비디오 видео videos فيديو"},
	{"audio,music", "音频 音乐 音樂 歌曲 音楽 음악 오디오 аудио музыка musica musik musique موسيقى"},
	{"database", "数据库 資料庫 データベース 데이터베이스 база данных datenbank basededatos"},
	{"data", "数据 資料 データ 데이터 данные datos daten donnees dados بيانات"},
	{"email", "邮件 电子邮件 郵件 邮箱 メール 이메일 메일 письмо почта correo correos mensaje courriel mails بريد"},
	{"message", "消息 信息 留言 短信 訊息 メッセージ 메시지 сообщение mensaje nachricht nachrichten mensagem رسالة"},
	{"user", "用户 用戶 使用者 ユーザー ユーザ 사용자 пользователь usuario benutzer nutzer utilisateur مستخدم"},
	{"account", "账户 账号 帳戶 アカウント 계정 аккаунт счет cuenta konto compte conta حساب"},
	{"password", "密码 密碼 パスワード 비밀번호 пароль contrasena passwort kennwort motdepasse senha"},
	{"permission,access", "权限 權限 アクセス 권한 разрешение доступ permiso berechtigung zugriff autorisation"},
	{"website,web,page", "网站 网页 網站 網頁 ウェブ サイト ページ 웹사이트 웹 페이지 сайт страница sitio pagina webseite seite موقع صفحة"},
	{"url,link", "链接 网址 連結 リンク 링크 ссылка enlace verknupfung lien"},
	{"browser", "浏览器 瀏覽器 ブラウザ 브라우저 браузер navegador navigateur متصفح"},
	{"code", "代码 代碼 程式碼 コード 코드 код codigo quellcode quelltext كود"},
	{"repository", "仓库 代码库 儲存庫 リポジトリ 저장소 репозиторий repositorio"},
	{"issue,bug", "问题 缺陷 問題 課題 イシュー バグ 이슈 버그 задача баг ошибка incidencia problema fehler probleme"},
	{"pull request", "拉取请求 合并请求 プルリクエスト 풀리퀘스트 пулреквест"},
	{"branch", "分支 ブランチ 브랜치 ветка rama branche"},
	{"commit", "提交记录 コミット 커밋 коммит"},
	{"project", "项目 專案 プロジェクト 프로젝트 проект proyecto projekt projet projeto مشروع"},
	{"task", "任务 任務 タスク 작업 задание tarea aufgabe tache tarefa مهمة"},
	{"log", "日志 日誌 ログ 로그 журнал лог registro protokoll سجل"},
	{"error", "错误 报错 錯誤 エラー 오류 에러 ошибка fehler erreur erro خطأ"},
	{"server", "服务器 伺服器 サーバー サーバ 서버 сервер servidor serveur خادم"},
	{"container", "容器 コンテナ 컨테이너 контейнер contenedor conteneur"},
	{"process", "进程 行程 プロセス 프로세스 процесс proceso prozess processus"},
	{"command", "命令 コマンド 명령 команда comando befehl commande"},
	{"system", "系统 系統 システム 시스템 система sistema systeme"},
	{"network", "网络 網路 ネットワーク 네트워크 сеть netzwerk reseau"},
	{"device", "设备 設備 デバイス 장치 устройство dispositivo gerat appareil"},
	{"version", "版本 バージョン 버전 версия"},
	{"package,dependency", "软件包 依赖 パッケージ 依存 패키지 пакет зависимость paquete paket paquet"},
	{"template", "模板 範本 テンプレート 템플릿 шаблон plantilla vorlage modele"},
	{"tag", "标签 標籤 タグ 태그 тег метка etiqueta schlagwort etiquette"},
	{"comment", "评论 评语 評論 コメント 댓글 комментарий comentario kommentar commentaire"},
	{"note", "笔记 备忘 筆記 メモ ノート 메모 노트 заметка заметки nota notiz notizen"},
	{"notification", "通知 알림 уведомление notificacion benachrichtigung"},
	{"reminder", "提醒 リマインド リマインダー 미리알림 напоминание напомни recordatorio erinnerung"},
	{"calendar", "日历 日曆 行事曆 カレンダー 캘린더 달력 календарь calendario kalender calendrier تقويم"},
	{"event", "事件 活动 活動 イベント 일정 событие мероприятие evento ereignis evenement"},
	{"meeting", "会议 會議 会議 ミーティング 회의 встреча совещание reunion besprechung"},
	{"contact", "联系人 聯絡人 連絡先 연락처 контакт contacto kontakt"},
	{"report", "报告 报表 報告 レポート 보고서 отчет доклад informe reporte bericht rapport relatorio تقرير"},
	{"status,state", "状态 狀態 状況 状態 상태 статус состояние estado zustand etat"},
	{"history,historical", "历史 歷史 履歴 歴史 기록 история historial historia verlauf geschichte historique historico تاريخ"},
	{"statistics", "统计数据 統計 통계 статистика estadistica estadisticas statistik statistiques"},
	{"information,info", "信息 资讯 詳情 详情 情報 정보 информация informacion informationen renseignements معلومات"},
	{"name", "名称 名字 姓名 名称 名前 이름 имя название nombre nom"},
	{"category", "分类 类别 分類 カテゴリ 카테고리 категория categoria kategorie categorie"},
	{"key", "密钥 关键 キー ключ clave schlussel"},
	{"mind map", "思维导图 心智圖 マインドマップ 마인드맵"},
	{"model", "模型 モデル 모델 модель modelo modell"},
	// things of the world
	{"weather", "天气 气象 天氣 天気 날씨 погода погоду clima meteo wetter tiempo طقس"},
	{"forecast", "预报 預報 予報 예보 прогноз pronostico vorhersage wettervorhersage prevision previsions"},
	{"temperature", "温度 气温 溫度 気温 기온 온도 температура temperatura temperatur حرارة"},
	{"news", "新闻 资讯 快讯 新聞 ニュース 뉴스 новости новость noticias nachrichten nouvelles actualites noticia أخبار"},
	{"hot,trending", "热榜 热搜 热门 热点 熱門 トレンド 人気 話題 인기 트렌드 тренды популярное tendencias trends tendances"},
	{"rank,ranking", "排行 榜单 排名 ランキング 순위 рейтинг clasificacion rangliste classement"},
	{"article", "文章 記事 기사 статья статьи articulo artikel"},
	{"paper,research", "论文 研究 論文 논문 научная исследование investigacion forschung recherche pesquisa"},
	{"book", "图书 书籍 小说 書籍 本を 책 книга libro buch bucher livre livro كتاب"},
	{"movie,film", "电影 電影 影视 映画 영화 фильм кино pelicula filme cinema فيلم"},
	{"game", "游戏 遊戲 ゲーム 게임 игра juego spiel jeu jogo لعبة"},
	{"map", "地图 地圖 地図 지도 карта mapa karte carte خريطة"},
	{"location,place", "位置 地点 地點 場所 位置情報 위치 장소 место местоположение lugar ubicacion ort standort lieu endroit مكان موقع"},
	{"address", "地址 住所 주소 адрес direccion adresse endereco عنوان"},
	{"coordinates,geocode", "坐标 经纬度 座標 緯度 経度 좌표 координаты coordenadas koordinaten coordonnees"},
	{"nearby", "附近 周边 周邊 近く 周辺 근처 주변 рядом поблизости cerca cercano nahe umgebung proche"},
	{"route,directions", "路线 路径 路線 ルート 経路 道順 경로 길찾기 маршрут дорога ruta itinerario strecke itineraire rota طريق مسار"},
	{"distance", "距离 距離 거리 расстояние distancia entfernung مسافة"},
	{"drive,driving", "驾车 开车 駕車 自驾 運転 ドライブ 운전 conducir autofahrt conduire"},
	{"walk,walking", "步行 徒歩 歩い 도보 пешком caminando fuss marche"},
	{"bike,cycling", "骑行 自行车 自転車 자전거 велосипед bicicleta fahrrad velo"},
	{"traffic", "交通 路况 渋滞 교통 пробки trafico verkehr trafic"},
	{"train,railway", "火车 列车 高铁 车次 火車 高鐵 電車 列車 新幹線 기차 열차 поезд tren zug bahn train trem قطار"},
	{"ticket", "车票 余票 机票 门票 切符 チケット 티켓 표 билет boleto billete fahrkarte billet passagem تذكرة"},
	{"station", "车站 站点 火车站 車站 駅 역 станция вокзал estacion bahnhof gare"},
	{"flight", "航班 飞机 飛機 フライト 飛行機 항공편 비행기 рейс самолет vuelo flug vol voo رحلة طيران"},
	{"hotel", "酒店 宾馆 民宿 飯店 ホテル 宿泊 호텔 숙소 отель гостиница hoteles unterkunft hebergement فندق"},
	{"travel,trip", "旅行 旅游 出行 行程 旅遊 旅程 여행 путешествие поездка viaje reise voyage viagem سفر"},
	{"restaurant", "餐厅 餐馆 饭店 餐廳 レストラン 식당 ресторан restaurante مطعم"},
	{"food,meal", "美食 食物 膳食 吃什么 食材 料理 食事 음식 식사 еда comida essen nourriture repas طعام"},
	{"recipe,dish", "菜谱 食谱 菜品 食譜 レシピ 요리 레시피 рецепт receta rezept recette receita وصفة"},
	{"shopping", "购物 購物 買い物 쇼핑 покупки compras einkaufen achats تسوق"},
	{"product", "商品 产品 產品 製品 상품 제품 товар продукт producto produkt produit produto منتج"},
	{"price", "价格 票价 多少钱 價格 値段 価格 料金 가격 цена стоимость precio preis preise prix preco سعر"},
	{"order", "订单 訂單 注文 주문 заказ pedido bestellung commande طلب"},
	{"stock", "股票 股价 股市 株価 株式 주식 주가 акции акция acciones aktie aktien bourse acoes أسهم"},
	{"finance,financial", "财经 金融 财务 财报 財經 財務 금융 재무 финансы финансовый finanzas finanzen financier financas مالية"},
	{"currency,exchange rate", "汇率 货币 外汇 匯率 為替 通貨 환율 통화 курс валюта валют divisa wechselkurs wahrung cambio عملة صرف"},
	{"crypto,cryptocurrency", "加密货币 比特币 虚拟货币 暗号資産 仮想通貨 비트코인 암호화폐 криптовалюта биткоин criptomoneda kryptowahrung cryptomonnaie"},
	{"company", "公司 企业 企業 会社 회사 기업 компания empresa unternehmen firma entreprise شركة"},
	{"tax", "税 税务 稅 税金 세금 налог impuesto steuer impot"},
	{"health,medical", "健康 医疗 医学 醫療 医療 건강 의료 здоровье медицинский salud gesundheit sante saude صحة طبي"},
	{"drug", "药品 药物 藥物 薬 약 лекарство medicamento medikament"},
	{"patient", "患者 病人 환자 пациент paciente"},
	{"time", "时间 時間 時刻 시간 время hora uhrzeit heure وقت"},
	{"date", "日期 日付 날짜 дата fecha datum"},
	{"today,current", "今天 今日 当前 现在 目前 實時 实时 現在 오늘 현재 지금 сегодня сейчас текущий hoy actual ahora heute aktuell jetzt aujourd'hui actuel maintenant hoje atual اليوم الحالي"},
	{"tomorrow", "明天 明日 내일 завтра manana morgen demain amanha غدا"},
	{"latest,new", "最新 最近 最新の 최신 последние последний новый ultimo reciente neueste letzte dernier recent novo"},
	{"timezone", "时区 時區 タイムゾーン 시간대 часовой zeitzone huso"},
	{"person,people", "人物 人员 人々 사람 человек люди persona personen personne pessoa"},
	{"language", "语言 語言 言語 언어 язык idioma sprache langue لغة"},
	{"city", "城市 都市 도시 город ciudad stadt ville cidade مدينة"},
	{"country", "国家 國家 국가 나라 страна pais land دولة"},
	{"school", "学校 大学 學校 학교 대학 школа университет escuela universidad schule universitat ecole"},
	{"law", "法律 法规 法令 법률 закон право ley gesetz loi"},
	{"sports", "体育 運動 スポーツ 스포츠 спорт deportes deporte sport"},
	{"technology,tech", "科技 技术 技術 テクノロジー 기술 технологии tecnologia technologie"},
	{"business", "商业 商務 ビジネス 비즈니스 бизнес negocios geschaft affaires"},
	{"politics", "政治 时政 정치 политика politica politik politique"},
	{"entertainment", "娱乐 娛樂 エンタメ 오락 развлечения entretenimiento unterhaltung divertissement"},
	{"culture", "文化 문화 культура cultura kultur"},
	{"art,museum", "艺术 博物馆 藝術 美術 博物館 예술 박물관 искусство музей arte museo kunst museum musee"},
	{"learn,education", "教育 学习 學習 学習 교육 학습 образование обучение educacion bildung"},
	{"character", "角色 人物角色 キャラクター 캐릭터 персонаж personaje"},
	{"card", "卡牌 卡片 カード 카드 tarjeta"},
	{"question,answer", "问答 提问 質問 回答 질문 답변 вопрос ответ pregunta respuesta frage antwort reponse"},
	{"web search", "上网搜索 网络搜索 ウェブ検索 웹검색"},
	{"content", "内容 內容 コンテンツ 내용 содержание контент contenido inhalt contenu"},
	{"detail", "详细 詳細 상세 подробный detalle detalles einzelheiten"},
	{"number", "数字 号码 番号 번호 номер число numero nummer"},
	{"object,item", "物品 対象 объект предмет objeto gegenstand objet"},
	{"color", "颜色 顏色 色 색상 цвет color farbe couleur"},
	{"title", "标题 標題 タイトル 제목 заголовок titulo titel titre"},
	{"result", "结果 結果 결과 результат resultado ergebnis resultat"},
}

// lexicon gives the English stems of a foreign word; its key is folded, and
// stemmed where the script has a stemmer. longest is the length in bytes of the
// longest key of a dense script.
var lexicon, longest = buildLexicon()

func buildLexicon() (map[string][]string, int) {
	m := make(map[string][]string, 3000)
	long := 0
	for _, f := range foreign {
		var english []string
		for e := range strings.SplitSeq(f.english, ",") {
			ps := strings.Fields(e)
			for i := range ps {
				ps[i] = stem(ps[i], latin)
			}
			english = append(english, strings.Join(ps, " "))
		}
		for w := range strings.FieldsSeq(f.words) {
			scan(w, func(w word) {
				key := w.text
				switch w.script {
				case dense:
					long = max(long, len(key))
				case cyrillic, arabic:
					key = stem(key, w.script)
				}
				for _, e := range english {
					if !contains(m[key], e) {
						m[key] = append(m[key], e)
					}
				}
			})
		}
	}
	return m, long
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// translate gives the English stems that a word of another language stands for;
// one with a space is two neighbouring words.
func translate(w word) []string {
	switch w.script {
	case latin:
		if e, ok := lexicon[w.text]; ok {
			return e
		}
		return lexicon[stem(w.text, latin)]
	case cyrillic, arabic:
		return lexicon[stem(w.text, w.script)]
	case dense:
		return translateRun(w.text)
	}
	return nil
}

// translateRun finds the longest known words in a run without spaces.
func translateRun(run string) []string {
	var out []string
	for i := 0; i < len(run); {
		found := false
		for n := min(longest, len(run)-i); n > 0; n-- {
			if i+n < len(run) && !utf8.RuneStart(run[i+n]) {
				continue
			}
			if e, ok := lexicon[run[i:i+n]]; ok {
				out = append(out, e...)
				i += n
				found = true
				break
			}
		}
		if !found {
			_, n := decode(run[i:])
			i += n
		}
	}
	return out
}
