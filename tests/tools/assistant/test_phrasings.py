"""How people order a thing, each in many ways: every phrasing with what it must come to, and sentences that only
look like orders. Written from knowledge of speech before the tables were, a line a phrasing."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest
from exo.tools.assistant.rules import plan
from exo.tools.assistant.tongue import fold

NOW = datetime.datetime(2026, 11, 30, 15, 0, tzinfo=datetime.UTC)  # a Monday

# said | month-day hour:minute | a word of the text | repeat
REMINDERS = """
remind me to call mum at five | 11-30 17:00 | call mum
remind me to call mum at five o'clock | 11-30 17:00 | call mum
could you remind me at 5 to call mum please | 11-30 17:00 | call mum
would you please remind me to take the bread out in twenty minutes | 11-30 15:20 | take the bread out
at quarter past four remind me about the meeting | 11-30 16:15 | meeting
at a quarter to six, remind me to feed the dog | 11-30 17:45 | feed the dog
remind me at half four to phone the bank | 11-30 16:30 | phone the bank
remind me at noon tomorrow to eat something | 12-01 12:00 | eat something
remind me tomorrow at midday to eat something | 12-01 12:00 | eat something
at midnight remind me to lock the door | 12-01 00:00 | lock the door
tonight remind me to put the bins out | 11-30 21:00 | bins
remind me tonight to put the bins out | 11-30 21:00 | bins
remind me to put the bins out tonight | 11-30 21:00 | bins
remind me this evening to water the basil | 11-30 19:00 | basil
remind me this evening at seven to water the basil | 11-30 19:00 | basil
tomorrow morning remind me to post the letter | 12-01 09:00 | letter
remind me in the morning to post the letter | 12-01 09:00 | letter
remind me first thing in the morning to post the letter | 12-01 09:00 | letter
remind me first thing tomorrow to post the letter | 12-01 09:00 | letter
remind me tomorrow evening that the match is on | 12-01 19:00 | match
remind me tomorrow night at ten to charge the phone | 12-01 22:00 | charge the phone
remind me on Thursday to buy stamps | 12-03 09:00 | stamps
remind me Thursday to buy stamps | 12-03 09:00 | stamps
remind me next Thursday at three pm to buy stamps | 12-03 15:00 | stamps
remind me on Thursday morning to buy stamps | 12-03 09:00 | stamps
on Saturday afternoon remind me to mow the lawn | 12-05 15:00 | lawn
remind me in a week to renew the permit | 12-07 15:00 | permit
a week from now remind me to renew the permit | 12-07 15:00 | permit
remind me a week from today to renew the permit | 12-07 09:00 | permit
in a fortnight remind me to ring the garage | 12-14 15:00 | garage
remind me in an hour and a half to turn the roast | 11-30 16:30 | roast
remind me in one and a half hours to turn the roast | 11-30 16:30 | roast
remind me in half an hour to turn the roast | 11-30 15:30 | roast
remind me in a half hour to turn the roast | 11-30 15:30 | roast
remind me half an hour from now to turn the roast | 11-30 15:30 | roast
remind me in an hour or so to turn the roast | 11-30 16:00 | roast
remind me in about an hour to turn the roast | 11-30 16:00 | roast
remind me in three quarters of an hour to turn the roast | 11-30 15:45 | roast
remind me in a couple of hours to turn the roast | 11-30 17:00 | roast
remind me in a couple hours to turn the roast | 11-30 17:00 | roast
remind me in 2h to turn the roast | 11-30 17:00 | roast
remind me in an hour's time to turn the roast | 11-30 16:00 | roast
remind me after lunch tomorrow at one pm to walk | 12-01 13:00 | walk
in ten minutes remind me that the kettle is on | 11-30 15:10 | kettle
ten minutes from now remind me the kettle is on | 11-30 15:10 | kettle
give me a reminder at 4 pm to stand up | 11-30 16:00 | stand up
set a reminder to stand up at 4 pm | 11-30 16:00 | stand up
set me a reminder for 4 pm to stand up | 11-30 16:00 | stand up
set up a reminder for 4pm tomorrow to stand up | 12-01 16:00 | stand up
create a reminder for Friday at noon: lunch with Rui | 12-04 12:00 | lunch with Rui
make a reminder for tomorrow at 3 pm about the parcel | 12-01 15:00 | parcel
add a reminder for tomorrow at 3 pm to fetch the parcel | 12-01 15:00 | parcel
put in a reminder for 6pm to defrost the soup | 11-30 18:00 | soup
reminder at 6 pm, defrost the soup | 11-30 18:00 | soup
reminder for 6 pm: defrost the soup | 11-30 18:00 | soup
reminder tomorrow 9 am dentist | 12-01 09:00 | dentist
i need a reminder at 8 tonight to take my tablets | 11-30 20:00 | tablets
i'd like a reminder at 8 tonight to take my tablets | 11-30 20:00 | tablets
i want you to remind me at 8 pm to take my tablets | 11-30 20:00 | tablets
i need you to remind me to take my tablets at 8 pm | 11-30 20:00 | tablets
don't let me forget to take my tablets at 8 pm | 11-30 20:00 | tablets
don't let me forget my tablets at 8 tonight | 11-30 20:00 | tablets
make sure i don't forget to take my tablets at 8 pm | 11-30 20:00 | tablets
make sure I remember to take my tablets tonight at 8 | 11-30 20:00 | tablets
help me remember to take my tablets at 8 pm | 11-30 20:00 | tablets
ping me at 4:45 to leave for the station | 11-30 16:45 | station
ping me in 40 minutes about the washing | 11-30 15:40 | washing
nudge me at five to leave | 11-30 17:00 | leave
give me a nudge in an hour about the washing | 11-30 16:00 | washing
give me a shout at six to start cooking | 11-30 18:00 | cooking
give me a buzz in 15 minutes to check the bath | 11-30 15:15 | bath
buzz me in 15 minutes to check the bath | 11-30 15:15 | bath
alert me at 3:30 pm that the call starts | 11-30 15:30 | call starts
notify me at 17:30 to log off | 11-30 17:30 | log off
let me know at 17:30 that it's time to log off | 11-30 17:30 | log off
tell me at 17:30 to log off | 11-30 17:30 | log off
let me know in 20 minutes to check the rice | 11-30 15:20 | rice
remember to remind me at 17:30 to log off | 11-30 17:30 | log off
can you give me a reminder at 17:30 to log off | 11-30 17:30 | log off
can i get a reminder at 17:30 to log off | 11-30 17:30 | log off
can i have a reminder for 17:30 to log off | 11-30 17:30 | log off
i have to log off at 17:30, remind me | 11-30 17:30 | log off
i need to be reminded at 17:30 to log off | 11-30 17:30 | log off
please be sure to remind me at 17:30 to log off | 11-30 17:30 | log off
hey exo remind me please at 17:30 to log off | 11-30 17:30 | log off
mind reminding me at 17:30 to log off | 11-30 17:30 | log off
would you mind reminding me at 17:30 to log off | 11-30 17:30 | log off
schedule a reminder for December 24th at 10 am to wrap presents | 12-24 10:00 | wrap presents
remind me on the 24th of December to wrap presents | 12-24 09:00 | wrap presents
remind me on december twenty-fourth at ten in the morning to wrap presents | 12-24 10:00 | wrap presents
remind me on the twelfth to pay the gas bill | 12-12 09:00 | gas bill
remind me on the 12th at 6 in the evening to pay the gas bill | 12-12 18:00 | gas bill
remind me every morning at seven to stretch | 12-01 07:00 | stretch | daily
every day at noon remind me to drink water | 12-01 12:00 | drink water | daily
remind me daily at 8 pm to write in my diary | 11-30 20:00 | diary | daily
remind me every night at ten to floss | 11-30 22:00 | floss | daily
every evening at half past nine remind me to floss | 11-30 21:30 | floss | daily
remind me each Tuesday at 6 pm to go to choir | 12-01 18:00 | choir | weekly
remind me on Tuesdays at 6 pm to go to choir | 12-01 18:00 | choir | weekly
every Tuesday at six in the evening remind me about choir | 12-01 18:00 | choir | weekly
remind me weekly on Friday at 4 pm to send the report | 12-04 16:00 | report | weekly
remind me to send the report every Friday at 4 pm | 12-04 16:00 | report | weekly
remind me every week on Friday at 4 pm to send the report | 12-04 16:00 | report | weekly
set a daily reminder at 9 am to meditate | 12-01 09:00 | meditate | daily
set a recurring reminder every day at 9 am to meditate | 12-01 09:00 | meditate | daily
remind me on weekdays at 8:15 to leave | 12-01 08:15 | leave | weekdays
remind me Monday to Friday at 8:15 am to leave | 12-01 08:15 | leave | weekdays
every hour remind me to stand up | 11-30 16:00 | stand up | hourly
remind me hourly to stand up | 11-30 16:00 | stand up | hourly
remind me every month on the 5th to pay rent | 12-05 09:00 | rent | monthly
remind me on the 5th of each month at 9 am to pay rent | 12-05 09:00 | rent | monthly
remind me every year on June 3rd at 9 am to call Lena | 06-03 09:00 | call Lena | yearly
wake me at 6 | 12-01 06:00 | alarm
wake me up at 6:15 | 12-01 06:15 | alarm
wake me up tomorrow at quarter to seven | 12-01 06:45 | alarm
can you wake me up at seven tomorrow please | 12-01 07:00 | alarm
please wake me at half past six | 12-01 06:30 | alarm
wake me up at half six | 12-01 06:30 | alarm
get me up at six tomorrow | 12-01 06:00 | alarm
i need to get up at six, wake me | 12-01 06:00 | alarm
set an alarm for six | 12-01 06:00 | alarm
set alarm for 6 am | 12-01 06:00 | alarm
set my alarm for seven thirty | 12-01 07:30 | alarm
set the alarm to 7:30 | 12-01 07:30 | alarm
alarm at 7 | 12-01 07:00 | alarm
alarm for seven tomorrow morning | 12-01 07:00 | alarm
i need an alarm for 5 am | 12-01 05:00 | alarm
i want an alarm at 5 am tomorrow | 12-01 05:00 | alarm
put an alarm on for 5 am | 12-01 05:00 | alarm
turn on an alarm for 5 am | 12-01 05:00 | alarm
set a wake up call for 6:45 | 12-01 06:45 | alarm
give me a wake-up call at 6:45 | 12-01 06:45 | alarm
set an alarm for 7 every weekday | 12-01 07:00 | alarm | weekdays
wake me up every day at 7 | 12-01 07:00 | alarm | daily
set an alarm on Saturday at 10 am | 12-05 10:00 | alarm
set an alarm for noon | 12-01 12:00 | alarm
make an alarm for 4 pm | 11-30 16:00 | alarm
erinnere mich um fünf daran, Mama anzurufen | 11-30 17:00 | Mama anzurufen
erinner mich um fünf an den Anruf | 11-30 17:00 | Anruf
kannst du mich um fünf an den Anruf erinnern | 11-30 17:00 | Anruf
könntest du mich bitte um fünf Uhr an den Anruf erinnern | 11-30 17:00 | Anruf
können Sie mich um 17 Uhr an den Anruf erinnern | 11-30 17:00 | Anruf
würden Sie mich bitte um 17 Uhr an den Anruf erinnern | 11-30 17:00 | Anruf
erinnern Sie mich um 17 Uhr an den Anruf | 11-30 17:00 | Anruf
erinnern Sie mich bitte morgen um acht daran, den Müll rauszubringen | 12-01 08:00 | Müll
um fünf an den Anruf erinnern | 11-30 17:00 | Anruf
bitte um halb sechs an die Post erinnern | 11-30 17:30 | Post
erinnere mich um halb sieben an die Suppe | 11-30 18:30 | Suppe
erinnere mich um viertel vor sechs an die Suppe | 11-30 17:45 | Suppe
erinnere mich um dreiviertel acht an die Suppe | 11-30 19:45 | Suppe
erinnere mich um viertel nach vier an die Suppe | 11-30 16:15 | Suppe
erinnere mich in anderthalb Stunden an die Suppe | 11-30 16:30 | Suppe
erinnere mich in eineinhalb Stunden an die Suppe | 11-30 16:30 | Suppe
erinnere mich in einer halben Stunde an die Suppe | 11-30 15:30 | Suppe
erinnere mich in ner halben Stunde an die Suppe | 11-30 15:30 | Suppe
in einer Stunde an die Suppe erinnern | 11-30 16:00 | Suppe
erinnere mich in einer guten Stunde an die Suppe | 11-30 16:00 | Suppe
erinnere mich in zwei Stunden daran, dass die Suppe kocht | 11-30 17:00 | Suppe
erinnere mich heute Abend an den Müll | 11-30 19:00 | Müll
erinnere mich heute Abend um acht an den Müll | 11-30 20:00 | Müll
heute Abend um acht erinnere mich an den Müll | 11-30 20:00 | Müll
erinnere mich morgen früh an den Müll | 12-01 08:00 | Müll
erinnere mich morgen Mittag an den Müll | 12-01 12:00 | Müll
erinnere mich morgen Nachmittag um drei an den Müll | 12-01 15:00 | Müll
erinnere mich übermorgen um neun an den Müll | 12-02 09:00 | Müll
erinnere mich am Donnerstag an den Müll | 12-03 09:00 | Müll
erinnere mich nächsten Donnerstag um 18 Uhr an den Müll | 12-03 18:00 | Müll
erinnere mich am Donnerstagabend an den Müll | 12-03 19:00 | Müll
erinnere mich am Donnerstag Abend um acht an den Müll | 12-03 20:00 | Müll
erinnere mich in einer Woche an den Müll | 12-07 15:00 | Müll
erinnere mich in vierzehn Tagen an den Müll | 12-14 15:00 | Müll
erinnere mich am 24. Dezember um zehn an die Geschenke | 12-24 10:00 | Geschenke
erinnere mich am vierundzwanzigsten Dezember an die Geschenke | 12-24 09:00 | Geschenke
erinnere mich jeden Tag um acht Uhr an die Tabletten | 12-01 08:00 | Tabletten | daily
erinnere mich täglich um 8 an die Tabletten | 12-01 08:00 | Tabletten | daily
erinnere mich jeden Morgen um sieben an die Tabletten | 12-01 07:00 | Tabletten | daily
erinnere mich jeden Abend um neun an die Tabletten | 11-30 21:00 | Tabletten | daily
jeden Abend um neun an die Tabletten erinnern | 11-30 21:00 | Tabletten | daily
erinnere mich jeden Dienstag um 18 Uhr an den Chor | 12-01 18:00 | Chor | weekly
erinnere mich dienstags um 18 Uhr an den Chor | 12-01 18:00 | Chor | weekly
erinnere mich werktags um sieben ans Aufstehen | 12-01 07:00 | Aufstehen | weekdays
erinnere mich jede Stunde ans Trinken | 11-30 16:00 | Trinken | hourly
vergiss nicht, mich um sechs an den Anruf zu erinnern | 11-30 18:00 | Anruf
lass mich um sechs den Anruf nicht vergessen | 11-30 18:00 | Anruf
lass mich nicht vergessen, um sechs Papa anzurufen | 11-30 18:00 | Papa
ich möchte um sechs an den Anruf erinnert werden | 11-30 18:00 | Anruf
ich will um sechs an den Anruf erinnert werden | 11-30 18:00 | Anruf
ich brauche um sechs eine Erinnerung an den Anruf | 11-30 18:00 | Anruf
Erinnerung um sechs: Papa anrufen | 11-30 18:00 | Papa
Erinnerung für morgen um zehn: Papa anrufen | 12-01 10:00 | Papa
stell eine Erinnerung für morgen um zehn: Papa anrufen | 12-01 10:00 | Papa
stell mir eine Erinnerung für 18 Uhr, Papa anrufen | 11-30 18:00 | Papa
mach mir eine Erinnerung für 18 Uhr: Papa anrufen | 11-30 18:00 | Papa
setz eine Erinnerung auf morgen um zehn: Papa anrufen | 12-01 10:00 | Papa
sag mir um sechs Bescheid, dass der Film anfängt | 11-30 18:00 | Film
sag mir um sechs, dass der Film anfängt | 11-30 18:00 | Film
gib mir um sechs Bescheid, dass der Film anfängt | 11-30 18:00 | Film
denk dran, mich um sechs an den Film zu erinnern | 11-30 18:00 | Film
weck mich um sechs | 12-01 06:00 | Wecker
weck mich bitte um sechs Uhr | 12-01 06:00 | Wecker
weck mich morgen um halb sieben | 12-01 06:30 | Wecker
weck mich um dreiviertel sieben | 12-01 06:45 | Wecker
wecken Sie mich um sieben | 12-01 07:00 | Wecker
kannst du mich um sieben wecken | 12-01 07:00 | Wecker
kannst du mich morgen früh um sieben wecken | 12-01 07:00 | Wecker
könnten Sie mich um sieben wecken | 12-01 07:00 | Wecker
ich möchte um sieben geweckt werden | 12-01 07:00 | Wecker
ich muss morgen um sechs aufstehen, weck mich | 12-01 06:00 | Wecker
stell den Wecker auf sechs | 12-01 06:00 | Wecker
stell mir den Wecker auf viertel vor sieben | 12-01 06:45 | Wecker
stell einen Wecker für sieben Uhr dreißig | 12-01 07:30 | Wecker
stellen Sie den Wecker auf 7 Uhr | 12-01 07:00 | Wecker
Wecker auf sieben | 12-01 07:00 | Wecker
Wecker um 7 Uhr | 12-01 07:00 | Wecker
Wecker auf sieben stellen | 12-01 07:00 | Wecker
mach den Wecker für morgen auf 6 Uhr 45 | 12-01 06:45 | Wecker
Wecker werktags um 6 Uhr 45 | 12-01 06:45 | Wecker | weekdays
recuérdame llamar a mamá a las cinco | 11-30 17:00 | llamar a mamá
recuérdame a las cinco que llame a mamá | 11-30 17:00 | llame a mamá
recuérdame que tengo que llamar a mamá a las cinco | 11-30 17:00 | llamar a mamá
recuérdeme llamar al banco a las cinco | 11-30 17:00 | banco
recordame llamar al banco a las cinco | 11-30 17:00 | banco
puedes recordarme llamar al banco a las cinco | 11-30 17:00 | banco
podrías recordarme a las cinco llamar al banco | 11-30 17:00 | banco
puede recordarme llamar al banco a las cinco | 11-30 17:00 | banco
me puedes recordar llamar al banco a las cinco | 11-30 17:00 | banco
me podrías avisar a las cinco para llamar al banco | 11-30 17:00 | banco
quiero que me recuerdes a las cinco llamar al banco | 11-30 17:00 | banco
quiero que me avises a las cinco de que empieza el cine | 11-30 17:00 | cine
avísame a las cinco y media de la reunión | 11-30 17:30 | reunión
avíseme a las siete y cuarto de la reunión | 11-30 19:15 | reunión
a las siete menos cuarto recuérdame sacar la basura | 11-30 18:45 | basura
recuérdame a las siete menos diez sacar la basura | 11-30 18:50 | basura
recuérdame sacar la basura esta noche | 11-30 21:00 | basura
recuérdame esta noche a las nueve sacar la basura | 11-30 21:00 | basura
recuérdame sacar la basura mañana por la mañana | 12-01 09:00 | basura
recuérdame mañana por la tarde sacar la basura | 12-01 16:00 | basura
recuérdame pasado mañana a las diez sacar la basura | 12-02 10:00 | basura
recuérdame el jueves sacar la basura | 12-03 09:00 | basura
recuérdame el jueves que viene a las seis de la tarde sacar la basura | 12-03 18:00 | basura
recuérdame este jueves a mediodía sacar la basura | 12-03 12:00 | basura
recuérdame dentro de media hora sacar la basura | 11-30 15:30 | basura
en media hora recuérdame sacar la basura | 11-30 15:30 | basura
recuérdame en una hora y media sacar la basura | 11-30 16:30 | basura
recuérdame dentro de tres cuartos de hora sacar la basura | 11-30 15:45 | basura
recuérdame dentro de un par de horas sacar la basura | 11-30 17:00 | basura
recuérdame dentro de una semana renovar el carné | 12-07 15:00 | carné
recuérdame en quince días renovar el carné | 12-15 15:00 | carné
recuérdame el 24 de diciembre a las diez envolver los regalos | 12-24 10:00 | regalos
recuérdame el día doce pagar el gas | 12-12 09:00 | gas
recuérdame todos los días a las ocho de la mañana tomar la pastilla | 12-01 08:00 | pastilla | daily
recuérdame cada día a las 8 de la tarde tomar la pastilla | 11-30 20:00 | pastilla | daily
todas las noches a las diez recuérdame tomar la pastilla | 11-30 22:00 | pastilla | daily
recuérdame tomar la pastilla cada mañana a las ocho | 12-01 08:00 | pastilla | daily
recuérdame los martes a las seis de la tarde ir al coro | 12-01 18:00 | coro | weekly
recuérdame todos los martes a las 18:00 ir al coro | 12-01 18:00 | coro | weekly
recuérdame de lunes a viernes a las siete tomar café | 12-01 07:00 | café | weekdays
recuérdame cada hora beber agua | 11-30 16:00 | agua | hourly
recuérdame el cinco de cada mes pagar el alquiler | 12-05 09:00 | alquiler | monthly
no me dejes olvidar la cita a las seis | 11-30 18:00 | cita
que no se me olvide la cita a las seis | 11-30 18:00 | cita
hazme un recordatorio para las seis: llamar a Pepe | 11-30 18:00 | Pepe
pon un recordatorio para mañana a las diez: llamar a Pepe | 12-01 10:00 | Pepe
ponme un recordatorio a las seis para llamar a Pepe | 11-30 18:00 | Pepe
crea un recordatorio para el viernes a las diez para llamar a Pepe | 12-04 10:00 | Pepe
recordatorio a las seis: llamar a Pepe | 11-30 18:00 | Pepe
necesito un recordatorio a las seis para llamar a Pepe | 11-30 18:00 | Pepe
despiértame a las siete | 12-01 07:00 | alarma
despiértame mañana a las siete y media | 12-01 07:30 | alarma
despiérteme a las siete | 12-01 07:00 | alarma
puedes despertarme a las siete | 12-01 07:00 | alarma
me puedes despertar mañana a las siete | 12-01 07:00 | alarma
pon una alarma a las siete | 12-01 07:00 | alarma
pon la alarma para las siete y cuarto | 12-01 07:15 | alarma
ponme una alarma a las seis de la mañana | 12-01 06:00 | alarma
ponme el despertador a las seis | 12-01 06:00 | alarma
pon el despertador a las seis y media | 12-01 06:30 | alarma
quiero una alarma para las siete | 12-01 07:00 | alarma
alarma a las siete | 12-01 07:00 | alarma
tengo que levantarme a las seis, despiértame | 12-01 06:00 | alarma
"""

# said | seconds | label
TIMERS = """
set a timer for three minutes | 180
set timer for three minutes | 180
set timer three minutes | 180
timer for three minutes | 180
three minute timer | 180
three minutes timer please | 180
3 min timer | 180
a three minute timer please | 180
start a timer for three minutes | 180
start a three-minute countdown | 180
can you set a timer for three minutes | 180
could you start a 3 minute timer for me | 180
would you set me a timer for three minutes please | 180
i need a three minute timer | 180
i need a timer for three minutes | 180
i'd like a timer for three minutes | 180
give me three minutes on the clock | 180
give me a three minute timer | 180
put three minutes on the timer | 180
put a timer on for three minutes | 180
put on a timer for three minutes | 180
set the timer to three minutes | 180
set the timer at three minutes | 180
time three minutes | 180
time me for three minutes | 180
time three minutes for me | 180
count down three minutes | 180
count down from three minutes | 180
start counting down three minutes | 180
let's do a three minute timer | 180
start the clock for three minutes | 180
new timer, three minutes | 180
another timer for three minutes | 180
set another three minute timer | 180
three minute tea timer | 180 | tea
set a tea timer for three minutes | 180 | tea
set a three minute timer for the tea | 180 | tea
set a timer for the tea for three minutes | 180 | tea
set a timer for three minutes for my tea | 180 | tea
set a timer called tea for three minutes | 180 | tea
tea timer three minutes | 180 | tea
start a timer named tea, three minutes | 180 | tea
set an egg timer for seven minutes | 420 | egg
set a timer for half an hour | 1800
set a half hour timer | 1800
half hour timer | 1800
set a timer for an hour and a half | 5400
set a timer for one and a half hours | 5400
set a timer for two and a half minutes | 150
set a timer for a minute and a half | 90
set a ninety second timer | 90
set a timer for an hour and fifteen minutes | 4500
set a timer for an hour and a quarter | 4500
set a timer for three quarters of an hour | 2700
set a timer for a quarter of an hour | 900
set a timer for a couple of minutes | 120
set a timer for a couple minutes | 120
set a timer for 1h 20m | 4800
set a timer for 2 minutes and 30 seconds | 150
ring in three minutes | 180
beep in three minutes | 180
wake me in twenty minutes | 1200
wake me up in half an hour | 1800
set an alarm in twenty minutes | 1200
set an alarm for twenty minutes from now | 1200
alarm in 20 minutes | 1200
let me know in three minutes | 180
tell me when three minutes are up | 180
tell me when three minutes have passed | 180
let me know when ten minutes are up | 600
ping me in three minutes | 180
alert me in three minutes | 180
buzz me in three minutes | 180
remind me in thirty seconds to blink | 30 | blink
stell einen Timer auf drei Minuten | 180
stell mir einen Timer auf drei Minuten | 180
stell mal nen Timer auf drei Minuten | 180
kannst du einen Timer auf drei Minuten stellen | 180
kannst du mir bitte einen Timer für drei Minuten stellen | 180
könntest du einen Timer für drei Minuten starten | 180
können Sie einen Timer auf drei Minuten stellen | 180
stellen Sie bitte einen Timer auf drei Minuten | 180
starte einen Timer von drei Minuten | 180
setz einen Timer auf drei Minuten | 180
mach einen Timer für drei Minuten | 180
mach mir einen Timer über drei Minuten | 180
ich brauche einen Timer für drei Minuten | 180
ich hätte gern einen Timer für drei Minuten | 180
Timer drei Minuten | 180
Timer auf drei Minuten stellen | 180
Timer für drei Minuten bitte | 180
drei Minuten Timer | 180
einen Drei-Minuten-Timer bitte | 180
drei Minuten auf die Uhr | 180
noch ein Timer, drei Minuten | 180
Timer für den Tee, drei Minuten | 180 | Tee
stell einen Timer auf drei Minuten für den Tee | 180 | Tee
stell für den Tee einen Timer auf drei Minuten | 180 | Tee
stell einen Timer für den Tee auf drei Minuten | 180 | Tee
Eieruhr auf sechs Minuten | 360
stell die Eieruhr auf sechs Minuten | 360
stell einen Timer auf anderthalb Minuten | 90
stell einen Timer auf eine Dreiviertelstunde | 2700
stell einen Timer auf eine Viertelstunde | 900
stell einen Timer auf eine halbe Stunde | 1800
stell einen Timer auf eineinhalb Stunden | 5400
stell einen Timer auf zweieinhalb Stunden | 9000
stell einen Timer auf eine Stunde und zehn Minuten | 4200
stell einen Timer auf eine Stunde zwanzig | 4800
stell einen Timer auf zwei Minuten dreißig | 150
weck mich in zwanzig Minuten | 1200
weck mich in einer halben Stunde | 1800
klingel in drei Minuten | 180
klingle in zehn Minuten | 600
sag mir in drei Minuten Bescheid | 180
gib mir in drei Minuten Bescheid | 180
sag Bescheid, wenn drei Minuten um sind | 180
pon un temporizador de tres minutos | 180
ponme un temporizador de tres minutos | 180
pon un temporizador para tres minutos | 180
ponga un temporizador de tres minutos | 180
puedes poner un temporizador de tres minutos | 180
podrías ponerme un temporizador de tres minutos por favor | 180
me pones un temporizador de tres minutos | 180
quiero un temporizador de tres minutos | 180
necesito un temporizador de tres minutos | 180
inicia una cuenta atrás de tres minutos | 180
programa un temporizador de tres minutos | 180
activa un temporizador de tres minutos | 180
empieza un temporizador de tres minutos | 180
temporizador de tres minutos | 180
temporizador tres minutos | 180
tres minutos de temporizador | 180
otro temporizador de tres minutos | 180
pon el temporizador a tres minutos | 180
pon un temporizador de tres minutos para el té | 180 | té
pon un temporizador para el té de tres minutos | 180 | té
pon un temporizador de media hora | 1800
pon un temporizador de una hora y media | 5400
pon un temporizador de minuto y medio | 90
pon un temporizador de hora y media | 5400
pon un temporizador de un cuarto de hora | 900
pon un temporizador de tres cuartos de hora | 2700
pon un temporizador de dos minutos y medio | 150
pon un temporizador de una hora y veinte minutos | 4800
pon un temporizador de un par de minutos | 120
despiértame en veinte minutos | 1200
despiértame dentro de media hora | 1800
avísame en tres minutos | 180
avísame dentro de tres minutos | 180
avísame cuando pasen tres minutos | 180
pon una alarma en veinte minutos | 1200
"""

# a call, and what says it
SAYINGS = {
    "time": "what's the time|what time is it now|whats the time please|what time do you have|tell me what time it is|"
    "do you know what time it is|could you tell me the time|got the time|the time please|current time|what's today's date|"
    "what's the date today|what day is it|what day is today|which day is it today|tell me today's date|what is the date|"
    "what day of the week is it|what's the day today|what year is it|what month is it|date please|any idea what time it is|"
    "what time is it right now|time check|what does the clock say|"
    "wie spät ist es|wie spät ist es gerade|wie viel Uhr ist es|wieviel Uhr haben wir|sag mir die Uhrzeit|sag mal die Uhrzeit|"
    "kannst du mir sagen, wie spät es ist|können Sie mir sagen, wie spät es ist|weißt du, wie spät es ist|wie spät haben wir's|"
    "welcher Tag ist heute|welchen Tag haben wir heute|was haben wir heute für einen Tag|welches Datum haben wir|"
    "der Wievielte ist heute|den Wievielten haben wir heute|was ist heute für ein Datum|was ist heute für ein Tag|"
    "wie lautet das heutige Datum|die Uhrzeit bitte|"
    "qué hora es|qué hora es ahora|qué horas son|me dices la hora|me puede decir la hora|puedes decirme la hora|dime qué hora es|"
    "sabes qué hora es|tienes hora|a qué día estamos|a cuántos estamos hoy|qué día es hoy|qué fecha es hoy|cuál es la fecha de hoy|"
    "en qué día estamos|dime la fecha|qué día de la semana es",
    "timers": "what have i got set|what timers are running|which timers are on|what timers do i have going|do i have any timers|"
    "are any timers running|list my timers|show my timers|show me all my timers|how long left|how much time is left|"
    "how much longer|how many minutes left|how long left on the timer|how much time left on my timer|"
    "how long has the timer got left|how long does the timer have left|how long until the timer goes off|time left|"
    "how much longer on the pasta timer|what's left on the timer|how's my timer doing|when will the timer ring|"
    "what's on my reminders|what are my reminders|what reminders have i got|list all reminders|read me my reminders|"
    "do i have any reminders|do i have any reminders today|any reminders for tomorrow|which alarms are set|what alarms do i have|"
    "is my alarm set|did i set an alarm|is there an alarm set|when does my alarm go off|what time is my alarm|"
    "what time is my alarm set for|check my alarms|tell me my timers|is the timer still running|"
    "what are you going to remind me about|"
    "welche Timer laufen|welche Timer laufen gerade|welche Wecker sind gestellt|welche Erinnerungen habe ich|"
    "was für Timer laufen|zeig mir meine Timer|zeig meine Erinnerungen|liste meine Erinnerungen auf|habe ich noch Timer|"
    "läuft noch ein Timer|wie lange noch|wie lange läuft der Timer noch|wie viel Zeit ist noch auf dem Timer|"
    "wie viel Zeit bleibt noch|wie viele Minuten noch|wann klingelt der Wecker|wann klingelt mein Wecker|ist der Wecker gestellt|"
    "ist mein Wecker an|auf wann ist der Wecker gestellt|wann läuft der Timer ab|wie lange dauert der Timer noch|"
    "was ist alles gestellt|welche Erinnerungen stehen an|"
    "qué temporizadores tengo|qué temporizadores hay|qué temporizadores están activos|cuánto queda|cuánto tiempo queda|"
    "cuánto falta|cuánto le queda al temporizador|cuánto queda en el temporizador|cuánto falta para que suene el temporizador|"
    "qué recordatorios tengo|tengo recordatorios|cuáles son mis recordatorios|muéstrame mis recordatorios|lista mis recordatorios|"
    "qué alarmas tengo|qué alarmas tengo puestas|tengo alguna alarma puesta|está puesta la alarma|a qué hora suena la alarma|"
    "a qué hora tengo la alarma|dime mis recordatorios",
    "cancel timer": "cancel the timer|stop the timer|kill the timer|turn off the timer|turn the timer off|clear the timer|"
    "end the timer|cancel my timer|cancel timer|stop timer|get rid of the timer|scrap the timer|delete the timer|"
    "drop the timer|forget the timer|i don't need the timer anymore|never mind the timer|shut off the timer|"
    "switch the timer off|please cancel that timer|can you stop the timer|cancel the countdown|stop the countdown|"
    "lösch den Timer|lösche den Timer|stopp den Timer|stoppe den Timer|brich den Timer ab|Timer abbrechen|Timer stoppen|Timer aus|"
    "mach den Timer aus|schalt den Timer aus|schalte den Timer ab|beende den Timer|stell den Timer ab|Timer löschen|"
    "kannst du den Timer stoppen|kannst du den Timer ausmachen|brechen Sie den Timer ab|löschen Sie den Timer|"
    "ich brauche den Timer nicht mehr|vergiss den Timer|nimm den Timer raus|"
    "cancela el temporizador|para el temporizador|detén el temporizador|quita el temporizador|borra el temporizador|"
    "apaga el temporizador|elimina el temporizador|puedes cancelar el temporizador|cancele el temporizador|"
    "ya no necesito el temporizador|anula el temporizador|cancelar temporizador",
    "cancel timer all": "cancel all timers|cancel all my timers|stop all the timers|clear all timers|delete all timers|"
    "kill all timers|turn off all timers|cancel both timers|cancel every timer|lösche alle Timer|alle Timer löschen|"
    "stoppe alle Timer|alle Timer stoppen|brich alle Timer ab|mach alle Timer aus|cancela todos los temporizadores|"
    "borra todos los temporizadores|quita todos los temporizadores",
    "cancel reminder": "cancel the reminder|delete the reminder|delete my reminder|remove the reminder|cancel that reminder|"
    "cancel my alarm|cancel the alarm|turn off my alarm|turn my alarm off|switch off the alarm|delete my alarm|"
    "i don't need the alarm anymore|lösche die Erinnerung|lösch die Erinnerung|Erinnerung löschen|entferne die Erinnerung|"
    "streich die Erinnerung|lösche meine Erinnerung|mach den Wecker aus|schalt den Wecker aus|Wecker aus|stell den Wecker aus|"
    "stell den Wecker ab|lösche den Wecker|ich brauche den Wecker nicht mehr|cancela el recordatorio|borra el recordatorio|"
    "quita la alarma|cancela la alarma|apaga la alarma|elimina la alarma|desactiva la alarma|quita el despertador",
    "undo": "undo|undo that|undo it|undo the last one|take that back|reverse that|revert that|scratch that|undo what you just did|"
    "rückgängig|mach das rückgängig|mach das wieder rückgängig|bitte rückgängig machen|nimm das zurück|das letzte rückgängig|"
    "machen Sie das rückgängig|deshaz eso|deshazlo|deshacer|deshaz lo último|anula eso",
    "stop": "stop|stop it|stop that|stop talking|be quiet|quiet please|shut up|hush|enough|that's enough|okay stop|stop now|"
    "please stop|stop reading|silence|zip it|pipe down|that'll do|stop speaking|stopp|hör auf|hör auf zu reden|sei still|"
    "sei ruhig|Ruhe|genug|halt|aufhören|schluss|Schluss jetzt|jetzt reicht's|seien Sie still|hören Sie auf|still sein|"
    "para|para ya|cállate|silencio|basta|ya basta|detente|deja de hablar|basta ya|cállese",
    "repeat": "repeat|repeat that|repeat that please|say that again|say it again|can you repeat that|could you say that again|"
    "come again|pardon|what did you say|what was that|one more time|once more|i didn't catch that|i didn't get that|"
    "i didn't hear you|again please|say again|can you say that one more time|tell me again|repeat yourself|run that by me again|"
    "would you repeat that|wiederhole das|wiederhol das bitte|noch mal|noch mal bitte|noch einmal bitte|sag das noch mal|"
    "sag das noch einmal|wie bitte|was hast du gesagt|was hast du gerade gesagt|kannst du das wiederholen|"
    "kannst du das noch mal sagen|können Sie das wiederholen|das habe ich nicht verstanden|ich habe dich nicht verstanden|"
    "repite|repítelo|repite eso|puedes repetir|puedes repetirlo|otra vez|dilo otra vez|qué has dicho|qué dijiste|cómo dices|"
    "no te he entendido|no te entendí|repita por favor|lo puedes repetir|cómo",
    "volume +": "louder|louder please|a bit louder|a little louder|turn it up|turn it up a bit|turn up the volume|"
    "turn the volume up|turn the volume up a little|volume up|increase the volume|raise the volume|speak up|speak louder|"
    "can you speak up|talk louder|i can't hear you|you're too quiet|it's too quiet|too quiet|more volume|crank it up|pump it up|"
    "make it louder|could you be a bit louder|up the volume|a touch louder|much louder|lauter|bitte lauter|etwas lauter|"
    "ein bisschen lauter|mach lauter|mach mal lauter|mach es lauter|mach den Ton lauter|dreh lauter|dreh auf|lauter bitte|"
    "sprich lauter|kannst du lauter sprechen|kannst du lauter machen|ich höre dich nicht|du bist zu leise|zu leise|"
    "Lautstärke hoch|Lautstärke erhöhen|erhöhe die Lautstärke|mach die Lautstärke höher|ein wenig lauter bitte|sprechen Sie lauter|"
    "machen Sie bitte lauter|geht das auch lauter|más alto|más fuerte|un poco más alto|sube el volumen|sube un poco el volumen|"
    "sube el volumen un poco|súbelo|súbele|más volumen|habla más alto|habla más fuerte|no te oigo|no te oigo bien|"
    "puedes subir el volumen|puedes hablar más alto|suba el volumen|aumenta el volumen|está muy bajo",
    "volume -": "quieter|quieter please|a bit quieter|softer|turn it down|turn it down a bit|turn down the volume|"
    "turn the volume down|volume down|lower the volume|decrease the volume|reduce the volume|too loud|you're too loud|"
    "that's too loud|that's way too loud|it's too loud|not so loud|less loud|keep it down|speak quieter|speak more quietly|lower your voice|"
    "make it quieter|can you be a little quieter|tone it down|a little softer please|leiser|bitte leiser|etwas leiser|"
    "ein bisschen leiser|mach leiser|mach mal leiser|mach es leiser|mach den Ton leiser|dreh leiser|dreh runter|sprich leiser|"
    "kannst du leiser sprechen|du bist zu laut|zu laut|das ist zu laut|viel zu laut|nicht so laut|Lautstärke runter|"
    "Lautstärke verringern|verringere die Lautstärke|leiser bitte|sprechen Sie leiser|machen Sie leiser|"
    "más bajo|un poco más bajo|baja el volumen|baja un poco el volumen|bájalo|bájale|menos volumen|habla más bajo|demasiado alto|"
    "está muy alto|está demasiado alto|puedes bajar el volumen|baje el volumen|baja la voz|más bajito|no tan alto|reduce el volumen",
    "brightness +": "brighter|brighter please|a bit brighter|make it brighter|make the screen brighter|turn up the brightness|"
    "turn the brightness up|brightness up|increase the brightness|raise the brightness|the screen is too dark|too dark|"
    "it's too dark|brighten the screen|brighten it up|more brightness|can you make the screen a bit brighter|heller|bitte heller|etwas heller|"
    "mach heller|mach es heller|mach den Bildschirm heller|Bildschirm heller|Helligkeit hoch|Helligkeit erhöhen|"
    "erhöhe die Helligkeit|zu dunkel|der Bildschirm ist zu dunkel|mehr Helligkeit|mach das Display etwas heller|"
    "kannst du den Bildschirm heller machen|machen Sie den Bildschirm heller|stell den Bildschirm heller|"
    "más brillo|sube el brillo|sube un poco el brillo|aumenta el brillo|más brillante|la pantalla está muy oscura|"
    "pon la pantalla más clara|puedes subir el brillo|demasiado oscuro",
    "brightness -": "dimmer|darker|darker please|a bit dimmer|dim it|dim the screen|dim the display|make it dimmer|"
    "make the screen darker|turn down the brightness|turn the brightness down|brightness down|lower the brightness|"
    "reduce the brightness|the screen is too bright|too bright|it's too bright|less bright|less brightness|can you dim the screen a bit|dunkler|"
    "bitte dunkler|etwas dunkler|mach dunkler|mach den Bildschirm dunkler|Bildschirm dunkler|Helligkeit runter|"
    "verringere die Helligkeit|dimm den Bildschirm|dimm das Display|zu hell|der Bildschirm ist zu hell|weniger hell|"
    "kannst du den Bildschirm dunkler machen|nicht so hell|menos brillo|baja el brillo|baja un poco el brillo|reduce el brillo|"
    "la pantalla está muy brillante|pantalla más oscura|pon la pantalla más oscura|puedes bajar el brillo|demasiado brillante|"
    "atenúa la pantalla",
    "volume 30": "volume thirty percent|set the volume to 30|set volume to thirty percent|volume to 30 percent|volume at 30%|"
    "turn the volume to 30|turn the volume down to 30|put the volume at three|volume 3|volume level three|volume on 3|"
    "Lautstärke 30|Lautstärke auf 30|Lautstärke auf dreißig Prozent|stell die Lautstärke auf 30 Prozent|Lautstärke drei|"
    "mach die Lautstärke auf drei|setz die Lautstärke auf 30 %|Lautstärke Stufe 3|"
    "volumen al 30|volumen al treinta por ciento|pon el volumen al 30|pon el volumen en 3|sube el volumen al 30|volumen 30|baja el volumen al 30 por ciento",
    "volume 100": "volume full|full volume|max volume|volume to max|turn the volume all the way up|volume all the way up|"
    "maximum volume|as loud as possible|as loud as you can|turn it all the way up|volle Lautstärke|maximale Lautstärke|"
    "Lautstärke auf Maximum|ganz laut|so laut wie möglich|volumen al máximo|pon el volumen al máximo|volumen máximo|todo el volumen",
    "brightness 50": "brightness fifty percent|set the brightness to 50|screen brightness to 50 percent|brightness 5|"
    "set the screen to 50 percent|half brightness|brightness at half|put the screen brightness on 50|Helligkeit 50|"
    "Helligkeit auf 50|Helligkeit auf fünfzig Prozent|stell die Helligkeit auf 50 Prozent|halbe Helligkeit|Bildschirm auf 50 Prozent|"
    "Helligkeit auf die Hälfte|brillo al 50|brillo al cincuenta por ciento|pon el brillo al 50|pon el brillo a la mitad",
    "mute 1": "mute|mute yourself|mute the sound|sound off|turn the sound off|turn off the sound|go silent|silent mode|"
    "stumm|Ton aus|stumm schalten|schalt dich stumm|mach den Ton aus|schalt den Ton aus|stell dich stumm|lautlos|"
    "silencia|siléncia el sonido|quita el sonido|sin sonido|silénciate|modo silencio|apaga el sonido",
    "mute 0": "unmute|unmute yourself|sound on|turn the sound on|turn the sound back on|turn on the sound|Ton an|Ton wieder an|"
    "mach den Ton an|schalt den Ton wieder ein|stummschaltung aufheben|activa el sonido|pon el sonido|quita el silencio|enciende el sonido",
    "sleep": "go to sleep|go to sleep now|sleep|sleep now|you can sleep now|you can go to sleep|time to sleep|go to bed|screen off|"
    "turn off the screen|turn the screen off|switch off the display|switch the screen off|blank the screen|go into sleep mode|"
    "sleep mode|stand by|go on standby|nap time|turn off the screen light|shut your eyes|geh schlafen|schlaf jetzt|schlaf ein|"
    "geh ins Bett|Bildschirm aus|mach den Bildschirm aus|schalt den Bildschirm aus|Display aus|du kannst schlafen gehen|"
    "du kannst jetzt schlafen|leg dich schlafen|Ruhemodus|Schlafmodus|geh in den Ruhemodus|gehen Sie schlafen|"
    "a dormir|vete a dormir|duérmete|duerme|apaga la pantalla|puedes dormir|modo reposo|ponte a dormir|apagar pantalla",
    "battery": "battery|battery level|how much battery|how much battery is left|how much battery do you have|how's the battery|"
    "how's your battery doing|what's the battery at|what's your battery level|battery status|battery percentage|what's the charge|"
    "are you charged|are you low on battery|do you need charging|how charged are you|is the battery low|check the battery|"
    "how much charge is left|how much juice do you have left|what percent is your battery|what's your battery percentage|"
    "do you have enough battery|Akku|Akkustand|wie ist der Akku|wie ist der Akkustand|wie voll ist der Akku|wie viel Akku hast du noch|"
    "wie viel Akku ist noch da|wie steht's um den Akku|wie hoch ist der Akkustand|hast du noch Akku|ist dein Akku leer|"
    "ist der Akku voll|musst du geladen werden|wie viel Prozent Akku hast du|Batterie|wie lange hält der Akku noch|wie viel Saft hast du noch|"
    "batería|nivel de batería|cuánta batería queda|cuánta batería te queda|cuánta batería tienes|cómo vas de batería|"
    "cómo está la batería|qué batería tienes|queda batería|te queda batería|tienes batería|cuál es el nivel de batería|estado de la batería",
}

# said | tool | its argument, lower case
TEXTS = """
note: buy screws | note | buy screws
note buy screws | note | buy screws
take a note: buy screws | note | buy screws
take a note that the boiler leaks | note | the boiler leaks
make a note that the boiler leaks | note | the boiler leaks
make a note to buy screws | note | buy screws
make a note of the code 4411 | note | the code 4411
jot down buy screws | note | buy screws
jot this down: buy screws | note | buy screws
jot down that the boiler leaks | note | the boiler leaks
write this down: the boiler leaks | note | the boiler leaks
write down the boiler leaks | note | the boiler leaks
can you write down that the boiler leaks | note | the boiler leaks
note down that the boiler leaks | note | the boiler leaks
note to self, buy screws | note | buy screws
new note: buy screws | note | buy screws
add a note: buy screws | note | buy screws
add a note to buy screws | note | buy screws
make me a note, buy screws | note | buy screws
save a note that the boiler leaks | note | the boiler leaks
put screws on my list | note | screws
put screws on the shopping list | note | screws
add screws to my list | note | screws
add screws to my shopping list | note | screws
add milk and eggs to the shopping list | note | milk and eggs
put down that the boiler leaks | note | the boiler leaks
get this down: the boiler leaks | note | the boiler leaks
Notiz: Schrauben kaufen | note | schrauben kaufen
notier Schrauben kaufen | note | schrauben kaufen
notiere bitte, dass der Kessel tropft | note | der kessel tropft
notier dir, dass der Kessel tropft | note | der kessel tropft
schreib auf, dass der Kessel tropft | note | der kessel tropft
schreib mal auf: Schrauben kaufen | note | schrauben kaufen
schreib dir auf, dass der Kessel tropft | note | der kessel tropft
mach eine Notiz: Schrauben kaufen | note | schrauben kaufen
mach dir eine Notiz, dass der Kessel tropft | note | der kessel tropft
mach mir eine Notiz: Schrauben kaufen | note | schrauben kaufen
neue Notiz: Schrauben kaufen | note | schrauben kaufen
kannst du notieren, dass der Kessel tropft | note | der kessel tropft
notieren Sie bitte: Schrauben kaufen | note | schrauben kaufen
schreib Milch auf die Liste | note | milch
schreib Milch auf die Einkaufsliste | note | milch
setz Milch auf die Einkaufsliste | note | milch
pack Milch auf die Einkaufsliste | note | milch
nota: comprar tornillos | note | comprar tornillos
toma nota: comprar tornillos | note | comprar tornillos
toma nota de que la caldera gotea | note | la caldera gotea
anota que la caldera gotea | note | la caldera gotea
anota comprar tornillos | note | comprar tornillos
apunta que la caldera gotea | note | la caldera gotea
apunta: comprar tornillos | note | comprar tornillos
apúntame que la caldera gotea | note | la caldera gotea
escribe que la caldera gotea | note | la caldera gotea
haz una nota: comprar tornillos | note | comprar tornillos
nueva nota: comprar tornillos | note | comprar tornillos
añade leche a la lista | note | leche
añade leche a la lista de la compra | note | leche
pon leche en la lista de la compra | note | leche
puedes apuntar que la caldera gotea | note | la caldera gotea
remember that Ana is allergic to nuts | remember | ana is allergic to nuts
remember Ana is allergic to nuts | remember | ana is allergic to nuts
please remember Ana is allergic to nuts | remember | ana is allergic to nuts
can you remember that Ana is allergic to nuts | remember | ana is allergic to nuts
i want you to remember that Ana is allergic to nuts | remember | ana is allergic to nuts
keep in mind that Ana is allergic to nuts | remember | ana is allergic to nuts
bear in mind that Ana is allergic to nuts | remember | ana is allergic to nuts
don't forget that Ana is allergic to nuts | remember | ana is allergic to nuts
never forget that Ana is allergic to nuts | remember | ana is allergic to nuts
remember this: Ana is allergic to nuts | remember | ana is allergic to nuts
make sure you remember that Ana is allergic to nuts | remember | ana is allergic to nuts
for future reference, Ana is allergic to nuts | remember | ana is allergic to nuts
for the record, Ana is allergic to nuts | remember | ana is allergic to nuts
commit to memory that Ana is allergic to nuts | remember | ana is allergic to nuts
merk dir, dass Ana keine Nüsse verträgt | remember | ana keine nüsse verträgt
merke dir bitte, dass Ana keine Nüsse verträgt | remember | ana keine nüsse verträgt
merk dir mal, dass Ana keine Nüsse verträgt | remember | ana keine nüsse verträgt
merk dir: Ana verträgt keine Nüsse | remember | ana verträgt keine nüsse
kannst du dir merken, dass Ana keine Nüsse verträgt | remember | ana keine nüsse verträgt
merken Sie sich, dass Ana keine Nüsse verträgt | remember | ana keine nüsse verträgt
vergiss nicht, dass Ana keine Nüsse verträgt | remember | ana keine nüsse verträgt
denk daran, dass Ana keine Nüsse verträgt | remember | ana keine nüsse verträgt
denk dran, dass Ana keine Nüsse verträgt | remember | ana keine nüsse verträgt
behalte im Kopf, dass Ana keine Nüsse verträgt | remember | ana keine nüsse verträgt
du sollst dir merken, dass Ana keine Nüsse verträgt | remember | ana keine nüsse verträgt
recuerda que Ana es alérgica | remember | ana es alérgica
recuerda esto: Ana es alérgica | remember | ana es alérgica
acuérdate de que Ana es alérgica | remember | ana es alérgica
no olvides que Ana es alérgica | remember | ana es alérgica
ten en cuenta que Ana es alérgica | remember | ana es alérgica
que no se te olvide que Ana es alérgica | remember | ana es alérgica
quiero que recuerdes que Ana es alérgica | remember | ana es alérgica
puedes recordar que Ana es alérgica | remember | ana es alérgica
recuerde que Ana es alérgica | remember | ana es alérgica
forget my old address | forget | my old address
forget about my old address | forget | my old address
forget that I like fennel | forget | i like fennel
forget what I told you about Ana | forget | ana
forget what I said about Ana | forget | ana
forget everything about Ana | forget | ana
forget everything I told you about Ana | forget | ana
please forget my old address | forget | my old address
delete the memory about Ana | forget | ana
delete what you know about Ana | forget | ana
erase what you know about Ana | forget | ana
remove the entry about Ana | forget | ana
you can forget about Ana | forget | ana
vergiss meine alte Adresse | forget | meine alte adresse
vergiss bitte meine alte Adresse | forget | meine alte adresse
vergiss, dass ich Fenchel mag | forget | ich fenchel mag
vergiss, was ich über Ana gesagt habe | forget | ana
vergiss alles über Ana | forget | ana
vergiss, was ich dir über Ana erzählt habe | forget | ana
lösche, was du über Ana weißt | forget | ana
lösch alles über Ana | forget | ana
vergessen Sie meine alte Adresse | forget | meine alte adresse
du kannst meine alte Adresse vergessen | forget | meine alte adresse
olvida mi dirección antigua | forget | mi dirección antigua
olvida que me gusta el hinojo | forget | me gusta el hinojo
olvida lo que te dije de Ana | forget | ana
olvida todo sobre Ana | forget | ana
borra lo que sabes de Ana | forget | ana
olvídate de mi dirección antigua | forget | mi dirección antigua
what do you know about Ana | recall | ana
what do you remember about Ana | recall | ana
what did I tell you about Ana | recall | ana
what did I say about Ana | recall | ana
what have I told you about Ana | recall | ana
what did I write down about Ana | recall | ana
do you remember anything about Ana | recall | ana
tell me what you know about Ana | recall | ana
tell me everything you know about Ana | recall | ana
what's in my notes about Ana | recall | ana
do I have any notes about Ana | recall | ana
show me my notes on Ana | recall | ana
search my notes for Ana | recall | ana
find my notes about Ana | recall | ana
was weißt du über Ana | recall | ana
was weißt du noch über Ana | recall | ana
was habe ich dir über Ana erzählt | recall | ana
was hab ich über Ana gesagt | recall | ana
was habe ich zu Ana notiert | recall | ana
sag mir, was du über Ana weißt | recall | ana
habe ich etwas über Ana gesagt | recall | ana
habe ich Notizen zu Ana | recall | ana
durchsuche meine Notizen nach Ana | recall | ana
such in meinen Notizen nach Ana | recall | ana
zeig mir meine Notizen zu Ana | recall | ana
qué sabes de Ana | recall | ana
qué sabes sobre Ana | recall | ana
qué te dije de Ana | recall | ana
qué te he dicho sobre Ana | recall | ana
qué recuerdas de Ana | recall | ana
dime lo que sabes de Ana | recall | ana
qué apunté sobre Ana | recall | ana
busca en mis notas Ana | recall | ana
tengo notas sobre Ana | recall | ana
add two minutes to the timer | add_time | 120
add two more minutes | add_time | 120
add two minutes | add_time | 120
two more minutes | add_time | 120
another two minutes | add_time | 120
give it two more minutes | add_time | 120
give me another two minutes | add_time | 120
give me two more minutes | add_time | 120
make the timer two minutes longer | add_time | 120
extend the timer by two minutes | add_time | 120
put another two minutes on the timer | add_time | 120
two minutes longer please | add_time | 120
add two minutes to my pasta timer | add_time | 120
can you add another two minutes to the timer | add_time | 120
noch zwei Minuten | add_time | 120
zwei Minuten mehr | add_time | 120
zwei Minuten länger | add_time | 120
gib mir noch zwei Minuten | add_time | 120
mach zwei Minuten mehr | add_time | 120
verlängere den Timer um zwei Minuten | add_time | 120
verlänger den Timer um zwei Minuten | add_time | 120
Timer um zwei Minuten verlängern | add_time | 120
stell den Timer zwei Minuten länger | add_time | 120
leg zwei Minuten drauf | add_time | 120
noch zwei Minuten auf den Timer | add_time | 120
dos minutos más | add_time | 120
otros dos minutos | add_time | 120
añade dos minutos | add_time | 120
añade dos minutos al temporizador | add_time | 120
dame dos minutos más | add_time | 120
ponle dos minutos más | add_time | 120
suma dos minutos al temporizador | add_time | 120
cancel the pasta timer | cancel | pasta
stop the pasta timer | cancel | pasta
turn off the pasta timer | cancel | pasta
cancel the timer for the pasta | cancel | pasta
cancel the timer called pasta | cancel | pasta
delete the reminder about the dentist | cancel | dentist
delete the dentist reminder | cancel | dentist
cancel the reminder to call Ana | cancel | call ana
cancel my reminder for the dentist | cancel | dentist
lösche den Nudel-Timer | cancel | nudel
brich den Timer für die Nudeln ab | cancel | nudeln
lösche die Erinnerung an den Zahnarzt | cancel | zahnarzt
stopp den Timer für den Tee | cancel | tee
cancela el temporizador de la pasta | cancel | pasta
borra el recordatorio del dentista | cancel | dentista
quita el recordatorio de llamar a Ana | cancel | llamar a ana
"""

# written when the tables knew all of the above; 251 of these 308 they knew then
LATER = """
reminder = remind me about the bins on Wednesday evening | remind me about lunch with Jo this Saturday at half twelve
reminder = I want to be reminded tomorrow at ten about the vet | could you set a reminder for me for seven pm to feed the fish
reminder = remind me at five to three to ring school | pop a reminder in for Friday at two: haircut | set a reminder on Sunday evening to pack
reminder = please remind me in forty-five minutes to take the cake out | in an hour, remind me to move the car
reminder = tomorrow at eight in the morning, remind me about the blood test | remind me two hours from now to check the glue
reminder = remind me on Monday the seventh to ring the landlord | remind me next Tuesday morning about the tyres
reminder = on the fifteenth remind me to cancel the trial | remind me on January second at nine to start the diet
reminder = every Sunday at six pm remind me to water the plants | remind me once a week on Monday at nine to back up
reminder = remind me every single day at nine am to take vitamins | remind me before I go to bed at eleven pm to lock up
reminder = don't let me forget the parcel tomorrow at noon | don't forget to remind me at six to call Bob | shout at me at six to start dinner
reminder = remind me later today at six to call Bob | remind me to call Bob when it's six o'clock | make a note to remind me at six to call Bob
reminder = get me up at quarter to six | I need waking at six | alarm six thirty am | set an alarm for quarter past seven in the morning
reminder = set an alarm for tomorrow, 7:15 | can you wake me at ten past six | wake me up on Saturday at nine | set my alarm for 5:45 every morning
reminder = please have me up by six tomorrow | Erinnere mich bitte am Mittwochabend an die Tonne | Erinner mich mal in ner Dreiviertelstunde an den Kuchen
reminder = Kannst du mich morgen Vormittag um zehn an den Tierarzt erinnern? | Erinnere mich Freitag um zwei an den Friseur
reminder = erinnere mich kommenden Montag um neun an das Backup | erinnere mich in zweieinhalb Stunden ans Auto | um zehn nach drei an die Schule erinnern
reminder = Ich muss um sechs Bob anrufen, erinnere mich daran | erinnere mich spätestens um sechs an Bob | Sag mir um sechs, dass ich Bob anrufen soll
reminder = stell mir für morgen um viertel nach sieben einen Wecker | Weck mich am Samstag erst um neun | weck mich täglich um 5 Uhr 45
reminder = Wecker für morgen früh 7 Uhr 15 | ich muss um sechs raus, weck mich bitte | jeden Sonntag um 18 Uhr die Pflanzen gießen, erinnere mich
reminder = Erinnerst du mich morgen an die Schlüssel? | Recuérdame el miércoles por la noche sacar la basura
reminder = recuérdame mañana a las diez lo del veterinario | avísame a las tres menos cinco para llamar al colegio
reminder = recuérdame en cuarenta y cinco minutos sacar el pastel | recuérdame dentro de dos horas y media mover el coche
reminder = cada domingo a las seis de la tarde recuérdame regar las plantas | el quince a las nueve recuérdame cancelar la prueba
reminder = despiértame el sábado a las nueve | ponme el despertador a las siete y cuarto mañana | pon una alarma para las seis menos cuarto
reminder = recuérdame a las 18:30 que llame a Pepe | acuérdame mañana de comprar leche
timer = four minute egg timer | set a timer 45 seconds | timer: 12 minutes | set a laundry timer for one hour and ten minutes
timer = start a ten minutes countdown | could you do a five-minute timer | give me a timer of eight minutes
timer = set a timer for twenty-five minutes for the bread | set a bread timer to 25 minutes | I need ten minutes on the timer
timer = set a timer for 1.5 hours | set a timer for a half an hour | can I get a five minute timer | can I have a timer for ten minutes
timer = start timing ten minutes | time ten minutes please | count ten minutes for me | put ten minutes on
timer = let me know when twenty minutes have gone by | wake me in an hour and a half | nap timer twenty minutes | Timer zehn Minuten für die Pizza
timer = Pizza-Timer auf zwölf Minuten | stell bitte mal einen Timer von zwölf Minuten | gib mir einen Timer auf 12 Minuten
timer = mach mal zwölf Minuten Timer | Timer 90 Sekunden | starte bitte den Timer für fünf Minuten | kannst du einen 5-Minuten-Timer stellen
timer = Countdown von zehn Minuten | weck mich in anderthalb Stunden | klingel bitte in zwölf Minuten | zähl zehn Minuten runter
timer = temporizador para la pizza doce minutos | pon doce minutos en el temporizador | quiero que pongas un temporizador de doce minutos
timer = cuenta atrás de diez minutos | pon un temporizador de hora y media para el pan | pon un cronómetro de cinco minutos | ponme diez minutos
timer = avísame cuando hayan pasado diez minutos
device = bit louder please | turn your volume up | can you turn it up | could you talk a bit louder | volume up a bit | turn the sound down a little
device = quieter, please | you're shouting | make yourself quieter | lower the volume to twenty | volume at sixty percent | set it to full volume
device = volume down to twenty percent | mute the volume | screen brighter please | turn the screen brightness up | lower the screen brightness
device = dim the screen to 20 percent | brightness to maximum | set brightness to max | lights of the screen down | screen's too bright
device = the display is too dark | turn the display off | go back to sleep | you can go to sleep now | how much power is left | what's your charge
device = are you running out of battery | battery percentage please | how full is your battery | do I need to charge you | Mach dich lauter
device = dreh die Lautstärke hoch | kannst du bitte etwas leiser sein | Stell die Lautstärke auf zwanzig | Lautstärke runter auf 20 Prozent
device = mach den Bildschirm ein bisschen dunkler | Helligkeit auf Maximum | Dimm das Display auf 20 Prozent | wie viel Akku hast du
device = wie lange hältst du noch durch | muss ich dich laden | wie geht's deinem Akku | schalt das Display aus | du darfst schlafen
device = schalte dich stumm | ponlo más alto | súbelo un poco | bájalo un poco | pon el volumen al veinte por ciento | baja el brillo al 20
device = pon el brillo al máximo | hay que cargarte | cómo andas de batería | apaga la pantalla por favor | ve a dormir
timers = how long has my timer got | what's the timer at | how much time is left on the pasta timer | when's my next alarm | what's my next reminder
timers = have I got anything set | what's coming up on my reminders | are there any alarms set for tomorrow | what alarm have I set
timers = do I have an alarm set | show reminders | wie viel Zeit hat der Timer noch | was steht auf dem Timer | wann ist meine nächste Erinnerung
timers = Habe ich für morgen einen Wecker gestellt? | zeig mir alle Erinnerungen | welche Erinnerungen sind noch offen | cuánto le falta al temporizador
timers = cuál es mi próxima alarma | tengo alguna alarma para mañana | qué tengo puesto
cancel = cancel that timer please | stop my egg timer | cancel the alarm for tomorrow | cancel tomorrow's alarm | delete all reminders
cancel = get rid of all my alarms | clear my reminders | remove the five minute timer | cancel the 7 am alarm | cancel all alarms
cancel = lösch bitte den Timer | den Timer bitte abbrechen | stell den Timer aus | alle Erinnerungen löschen | lösche den Wecker für morgen
cancel = mach den Nudeltimer aus | quita la alarma de mañana | borra todas las alarmas | cancela todos los recordatorios
cancel = para el temporizador de la pizza
time = what's the time now please | tell me the date please | what day are we | what's today | today's date | what day of the month is it
time = do you have the time | can you tell me what day it is | wie viel Uhr ist es denn | welcher Wochentag ist heute | was für ein Tag ist heute
time = welches Datum haben wir heute | ¿me dices qué hora es? | qué hora tenemos | a qué estamos hoy | en qué fecha estamos
add_time = add another minute to the timer | five more minutes please | give the timer five more minutes | extend it by five minutes
add_time = can I get five more minutes | plus five minutes | make the timer five minutes longer | noch fünf Minuten bitte | mach fünf Minuten länger
add_time = stell den Timer um fünf Minuten länger | fünf Minuten drauf | cinco minutos más por favor | añádele cinco minutos
add_time = alarga el temporizador cinco minutos
note = make a note: the spare key is with Tom | note: dentist moved to May | jot this down, size 42 | can you take a note, paint is RAL 9010
note = write this down for me: paint is RAL 9010 | please note that the paint is RAL 9010 | add bread to the shopping list
note = put batteries on my shopping list | Schreib dir auf: Farbe ist RAL 9010 | Notier mal, Farbe ist RAL 9010 | Mach mal eine Notiz: Farbe RAL 9010
note = setz Brot auf meine Einkaufsliste | toma nota, la pintura es RAL 9010 | apunta pan en la lista de la compra | apúntalo: la pintura es RAL 9010
remember = remember I parked on level three | remember, my locker is 42 | I'd like you to remember that I parked on level 3
remember = please keep in mind I don't eat pork | don't forget I'm allergic to cats | Merk dir bitte: mein Spind ist 42
remember = Merk dir, ich parke auf Ebene drei | Denk dran, dass ich kein Schweinefleisch esse | recuerda que aparqué en la planta tres
remember = no te olvides de que soy alérgico
forget = forget my locker number | forget that I parked on level three | please forget what I told you about Tom | delete everything you know about Tom
forget = forget the thing about Tom | Vergiss, was ich dir über Tom gesagt habe | Vergiss meine Spindnummer | olvida lo de Tom
forget = olvida lo que te conté de Tom
recall = what did I tell you about Tom's party | what do you remember about the boiler | did I say anything about the boiler
recall = have I mentioned the boiler | what did I note about the boiler | was hab ich dir über den Kessel erzählt | was weißt du über meinen Spind
recall = qué te conté sobre Tom | qué dije de la caldera
repeat = could you repeat that for me | sorry, I missed that | what was that last bit | can you say that again more slowly | say that once more
repeat = I didn't quite hear that | noch mal bitte, ich hab's nicht gehört | kannst du das bitte noch einmal sagen | was hast du da gesagt
repeat = puedes decirlo otra vez | repítemelo
stop = ok stop | stop please | that's enough now | please be quiet | stop the noise | hör jetzt auf | sei bitte still | jetzt ist gut | cállate ya
stop = para por favor | ya es suficiente
undo = undo that please | can you undo that | oops undo | no, take that back | undo my last command | mach das bitte rückgängig
undo = nimm das wieder zurück | deshaz lo último por favor | vuelve atrás
"""

# nothing of these may run, nor be answered by a question back
NONE = """
what day is it tomorrow | how much | I have to leave at five | call me Ishmael | call me at five | tell me at five | say in five minutes
let me know tomorrow | he set an alarm for six | we set an alarm for six | my wife set an alarm for six | the timer is set for ten minutes
I already set a timer for ten minutes | you set a timer for ten minutes | please put the milk on the list of Anna | add Anna to the guest list
remember this | remember that day | note the time | note how beautiful it is | write down your name | put down the phone | get down on the floor
take down the picture | ring my mother in ten minutes | ping me | wake me when September ends | wake me up before you go go
tell me when dinner is ready | tell me when you are ready | let me know when it rains | let me know when Anna calls | call me when you are home
set a record | set it and forget it | turn up at five | turn up the heat | turn it up to eleven | bring the book down | quiet down said the teacher
light up the room | it's too dark in here | you are very quiet today | forget everything | delete all my files | what do I have on my calendar
read my list | what's on the clock tower | how is the battery made | power level over 9000 | stop reading that book | stop and think | cancel the concert
cancel the dentist | no more, please | otra cosa | dos más | tres días más | más | noch eins | noch eine Woche | noch drei Tage | drei Tage länger
mach auf | mach hoch | mach weg | stell den Ton im Fernseher leiser | mach den Wecker im Schlafzimmer aus | ich brauche dich nicht mehr | was läuft
was läuft im Kino | läuft alles | wann ist der Termin | wann kommt der Zug | sag mir um fünf was du willst | melde dich morgen | sag mir Bescheid
dime cuando llegues | avísame cuando llegue Ana | avísame si llueve | ponte a trabajar | apunta esto | qué recuerdas | dime algo | hay pan | tengo hambre
queda leche | queda mucho | cuánto queda de leche | cómo estás | cómo va todo | está muy alto el precio | pon la mesa | pon música
pon la lista de la compra en la mesa | what is on my mind | what did you say yesterday | Sorry? | I'm done with you for today | good night | time for bed
is it time for bed | sleep tight | sleep well | get some rest
I set a timer yesterday | my timer rang too early | the timer went off | she set a timer for ten minutes | did you set a timer
my mother has a kitchen timer | how do timers work | what is an egg timer | who invented the timer | he bought a timer for ten euros
the bomb timer showed three minutes | we waited ten minutes | it took two more minutes than planned | I ran for half an hour
I need ten minutes to think about it | the timer in the oven is broken | is a timer better than an alarm | I hate the sound of the timer
set the table | set the oven timer on the stove to 200 degrees | put the pasta on at eight | I put the kettle on
three minutes is too long for an egg | the tea needs three minutes | ten minutes is enough | a timer for ten minutes costs five euros
remind Anna to call me at five | remind my brother about the rent tomorrow | can you remind people of things
she reminded me at six to leave | you remind me of my teacher | this reminds me of Rome | he reminded me of you yesterday
he said remind me tomorrow | why did you remind me at five | did you remind me at five | you forgot to remind me at six
I was reminded at five of the meeting | remind me what the capital of Peru is | remind me how to tie a tie
I don't want to be reminded at five | don't remind me at five | never remind me of that | stop reminding me at five
what does remind me tomorrow mean in German | write a story in which someone says wake me at six | translate remind me tomorrow at five
the alarm woke me at six | my alarm goes off at six every day | the fire alarm rang at noon | there was an alarm at five this morning
he wakes me at six every day | the baby woke me up at four | the neighbours' alarm rang at three | I woke up at six
what is an alarm clock | my alarm clock is broken | the alarm at work is loud | I usually get up at six | I had to get up at six today
I got up at half past five | we get up at six on weekdays | do I need to get up at six | when do I have to get up
he has to get up at six tomorrow | I will call you at five | I'll let you know at five | she will let me know at five
tell me at what age dinosaurs died | tell me a joke at five | tell me in three sentences what love is | tell me about noon
tell me in ten words what a star is | let me know what you think | I told him at five to leave | tell my wife at five to come
what time does the shop open | what time is dinner | what time is it in London | what was the date of the battle | the date was fun
I had a date yesterday | what day is Christmas | what day was the first of May | on what day did we meet | time heals all wounds
what is time | the time of my life | do you have time tomorrow | how do I tell the time | this day is great | what year was it
how long is the Nile | how long left till Christmas | how much time do I need for the roast | how long does pasta take
how much longer is the Nile than the Rhine | how many minutes are in a day | how long until spring | how much time is left in the game
I cancelled the timer | cancel my subscription | cancel the meeting at five | cancel my flight | cancel the order | can I cancel a contract
he cancelled the reminder | delete the file | stop the music in the kitchen | stop the war | stop smoking is hard | the bus will stop here
I can't stop eating | make it stop raining | when does the rain stop | the last stop | stop by tomorrow | a full stop
quiet people are clever | I enjoy the silence | enough is enough said my aunt | be quiet is rude | hush little baby is a song
repeat offenders | history repeats itself | he said it again and again | repeat the word banana three times | say hello again to Tom
what did she say | what did you say to her | what was that song called | I am sorry for being late | sorry about yesterday
what did you say about the weather | I missed that bus | once more unto the breach who wrote it | can a parrot repeat words
the music was too loud | my neighbour is too loud | it was too loud in the bar | is 80 decibels too loud | who sang louder
I turned it up a bit | she turned the volume down | what is the volume of a sphere | the second volume of the novel | volume 3 of the book is missing
volume 30 of the magazine came today | how do I calculate the volume | the volume of traffic is up | the volume at the concert was at 100
a louder one would be better than this | I speak louder when I am angry | the class is quieter today | my voice is softer now
the room is too dark | it is too dark to read outside | the future looks brighter | brighter days will come | my hair is getting darker
the sun is too bright today | how bright is Sirius | she has a bright mind | dim sum is tasty | the light is dim | turn on the kitchen light
dim the lights in the living room | turn off the lights | turn off the TV screen | my phone screen is too bright | the screen of my laptop is broken
half the brightness of the sun | what is brightness | mute swans are white | he is mute | a deaf mute man | the sound of silence
turn the sound of the TV off | I love the sound of rain | unmute was a band | I was on mute the whole call
I need to sleep | I can't sleep | how much sleep do I need | she went to sleep | sleep is important | go to sleep little one is a lullaby
I go to sleep at ten | the cat goes to sleep on me | what happens when you sleep | did you sleep well | is he sleeping | time to sleep is short for parents
I turned the screen off | a screen off Broadway | how long should I nap | my car battery is dead | what is a battery | how does a battery work
the battery of my phone lasts a day | how much does a car battery cost | assault and battery | I bought new batteries | battery acid is dangerous
how much battery does an electric car have | is a lithium battery safe | the battery charge against him was dropped | my watch needs charging
undo the button of my coat | how do I undo a commit | what is done cannot be undone | I take it back to the shop tomorrow | take that back to Ana
scratch that itch | he took that back | note the difference between the two | a note on the fridge | the note was in B flat | I noted it yesterday
he wrote down my number | I made a note of it yesterday | she took a note | what is a note in music | a note from my teacher
what should I note about him | I put it on my list yesterday | what is on the shopping list | the list is long | Schindler's list
put me on the guest list of your dreams | I remember my grandmother | do you remember when we met | I can't remember his name
remember me | remember the Alamo | remember when we were young | did you remember to lock up | I don't remember | she remembers everything
remember to breathe | don't forget me | never forget me | I will never forget that day | I forgot my keys | forget it | forget him
people forget quickly | you forgot my birthday | did you forget | I want to forget him | why do we forget dreams
what do you know | what do you think about Ana | what did Ana say about me | tell me about Rome | what do people say about Rome
do you know anything | what did he tell you about me | search the web for pizza | find a restaurant nearby | find me a job
add two and two | add two minutes to the recipe time in the book | two more beers please | another two weeks of school | two minutes late again
give me two minutes to explain | I need two more minutes to finish | give me a minute | wait two minutes | just a minute | in a minute
one more thing | ten more days until Christmas | five more people came | play two more songs | I waited another two minutes
gestern habe ich einen Timer gestellt | der Timer hat geklingelt | mein Timer ist kaputt | wie funktioniert ein Wecker
der Wecker hat um sechs geklingelt | mein Wecker klingelt jeden Tag um sechs | sie hat mich um sechs geweckt | er weckt mich immer um sechs
ich bin um sechs aufgestanden | ich stehe um sechs auf | muss ich morgen um sechs aufstehen | er muss morgen um sechs aufstehen
erinnere Anna an den Termin um fünf | du erinnerst mich an meinen Lehrer | das erinnert mich an Rom | ich erinnere mich an gestern
sie hat mich um fünf daran erinnert | kannst du dich an gestern erinnern | ich kann mich nicht erinnern | ich erinnere mich an den Sommer
hast du mich um fünf erinnert | erinnere mich nicht daran | erinnere mich nicht um fünf | warum hast du mich nicht um sechs geweckt
wie lange dauert das Spiel noch | wie lange kocht ein Ei | wie lange noch bis Weihnachten | noch zwei Bier bitte | noch zwei Tage bis Freitag
ich brauche noch zwei Minuten | warte zwei Minuten | in zwei Minuten kommt der Bus | der Bus kommt in zwei Minuten | zwei Minuten zu spät
wie spät war es | um wie viel Uhr fährt der Zug | wie spät ist es in Tokio | welcher Tag war der 3. Mai | wann ist Ostern
der Akku vom Handy ist leer | was ist ein Akku | mein Akku hält nicht lange | wie viel kostet ein Akku | das Handy muss geladen werden
die Musik war zu laut | der Nachbar ist zu laut | es war gestern zu laut | wer singt lauter | lauter Leute waren da | lauter nette Leute
mach die Musik im Wohnzimmer lauter | das Zimmer ist zu dunkel | es wird dunkler | es ist zu hell draußen | mach das Licht dunkler
dimm das Licht im Flur | mein Bildschirm am Laptop ist kaputt | ich gehe schlafen | ich muss schlafen | er schläft | wie lange soll ich schlafen
geh weg | mach das Fenster zu | mach das Licht aus | mach den Fernseher aus | stumme Leute | ich war stumm | der Ton war schlecht
hör auf dein Herz | er hörte auf | ich höre auf zu rauchen | Ruhe in Frieden | die Ruhe vor dem Sturm | halt die Tür auf | stopp das Auto dort
ich habe es notiert | er schrieb es auf | die Notiz lag auf dem Tisch | was ist eine Notiz | schreib ein Gedicht | schreib einen Brief an Ana
vergiss es | vergiss mich nicht | vergiss das | ich habe meinen Schlüssel vergessen | ich vergesse alles | warum vergisst man
ich merke das | ich merke mir Namen schlecht | hast du dir das gemerkt | was hat sie gesagt | was hast du zu ihr gesagt | noch mal Glück gehabt
was weißt du | weißt du etwas | nimm das Paket zurück in den Laden | ich nehme alles zurück | sag mir, dass du mich liebst | sag mir in drei Worten, was Liebe ist
ayer puse un temporizador | el temporizador sonó | cómo funciona un temporizador | mi temporizador está roto | la alarma sonó a las seis
mi alarma suena a las seis todos los días | ella me despertó a las seis | me despierto a las seis | me levanté a las seis
me recuerdas a mi madre | eso me recuerda a Roma | me recordó a las cinco la cita | recuerdo la cita de las cinco | no me recuerdes eso
recuérdame cómo se llama el rey | avisa a Ana a las cinco | dile a Ana que venga a las cinco | él dijo recuérdame mañana
qué hora es en Tokio | a qué hora abre la tienda | qué día es Navidad | a qué hora sale el tren | qué día fue el tres de mayo
cuánto falta para Navidad | cuánto queda de partido | cuánto tiempo se cuece un huevo | dos cervezas más | dos minutos tarde | espera dos minutos
la batería del móvil está agotada | mi hermano toca la batería | cuánto cuesta una batería | qué es una batería
la música está muy alta | el vecino habla muy alto | mi hijo es más alto | el más alto de la clase | sube las escaleras | baja a la calle
sube la persiana | baja la persiana | la luz está muy fuerte | apaga la luz | apaga la tele | el cielo está más oscuro
no puedo dormir | quiero dormir | voy a dormir | cuánto hay que dormir | ella duerme mucho | para el coche aquí | para mí un café | para qué sirve
basta con decirlo una vez | silencio era una película | otra vez lo mismo de siempre | cómo estás | cómo te llamas | qué dijo ella
anoté el número ayer | qué es una nota | la nota del examen | toma un café | apunta alto en la vida | apunta a la diana
recuerda comprar pan | no recuerdo su nombre | te acuerdas de mí | no me olvides | olvídalo | olvida eso | se me olvidó la llave | todo se olvida
qué sabes | qué sabe Ana de mí | busca un restaurante | deshacer un nudo es difícil | quita los zapatos | quita la mesa | otros dos amigos
cancelé el temporizador | bajé el volumen | subí el volumen | quité la alarma | apagué la pantalla | ella me pidió que subiera el volumen
ich muss um sechs aufstehen | i need to be up at six | i have to wake up at five tomorrow | sorry | hold on to the rail
"""


def rows(block: str, width: int) -> list[tuple[str, ...]]:
    """The lines of a table, each with `width` cells."""
    lines = [[cell.strip() for cell in line.split("|")] for line in block.strip().splitlines()]
    return [(*cells, *[""] * (width - len(cells))) for cells in lines]


def sayings() -> Iterator[tuple[str, str]]:
    for what, said in SAYINGS.items():
        for each in said.split("|"):
            yield each, what


LOOKALIKES = [each.strip() for line in NONE.strip().splitlines() for each in line.split(" | ")]


def later() -> Iterator[tuple[str, str]]:
    for line in LATER.strip().splitlines():
        tool, _, said = line.partition(" = ")
        for each in said.split(" | "):
            yield each, tool


def one(said: str) -> tuple[str, dict[str, Any]]:
    found = plan(said, NOW)
    assert len(found.calls) == 1, f"{said!r}: {found}"
    return found.calls[0]


@pytest.mark.parametrize(("said", "when", "text", "repeat"), rows(REMINDERS, 4))
def test_a_reminder_or_an_alarm_however_it_is_ordered(
    said: str, when: str, text: str, repeat: str
) -> None:
    tool, args = one(said)
    assert tool == "reminder"
    day = datetime.datetime.fromisoformat(args["at"])
    assert f"{day:%m-%d %H:%M}" == when and day.year == (2027 if when < "11" else 2026)
    assert text.lower() in args["text"].lower() and args.get("repeat", "") == repeat
    assert len(args["text"]) <= len(text) + 18  # nothing of the order stands in it


@pytest.mark.parametrize(("said", "seconds", "label"), rows(TIMERS, 3))
def test_a_timer_however_it_is_ordered(said: str, seconds: str, label: str) -> None:
    tool, args = one(said)
    assert (tool, args["seconds"]) == ("timer", int(seconds))
    # an alarm's timer is named after what it is
    assert args.get("label", "") in ({label} if label else {"", "alarm", "Wecker", "alarma"})


@pytest.mark.parametrize(("said", "what"), list(sayings()))
def test_what_has_no_text_however_it_is_said(said: str, what: str) -> None:
    tool, args = one(said)
    name, *more = what.split()
    if name in ("time", "timers", "undo", "stop", "repeat"):
        assert (tool, args) == (name, {})
    elif name == "cancel":
        want = {"what": more[0]} | ({"which": "all"} if more[1:] else {})
        got = dict(args)
        if "which" in got:
            got["which"] = "all"  # in the words of the language
        assert (tool, got) == ("cancel", want)
    else:
        facts: dict[str, Any] = {}
        for each in more:
            facts = {"delta": int(f"{each}10")} if each in "+-" else {"value": int(each)}
        assert (tool, args) == ("device", {"action": name} | facts)


@pytest.mark.parametrize(("said", "tool", "text"), rows(TEXTS, 3))
def test_what_carries_a_text_however_it_is_said(said: str, tool: str, text: str) -> None:
    name, args = one(said)
    assert name == tool
    if tool == "add_time":
        assert args == {"seconds": int(text)}
        return
    key = {"forget": "id", "recall": "query", "cancel": "label"}.get(tool, "text")
    got = args[key].lower().strip(" .?")
    assert got == text or text in got and "list" in fold(said)


@pytest.mark.parametrize(("said", "tool"), list(later()))
def test_what_was_thought_of_later(said: str, tool: str) -> None:
    assert one(said)[0] == tool


def test_an_early_hour_of_another_day_is_one_of_its_afternoon() -> None:
    assert one("remind me on Friday at two to go home")[1]["at"] == "2026-12-04T14:00"
    assert one("remind me on Friday at 2 am to go home")[1]["at"] == "2026-12-04T02:00"
    assert one("remind me on Friday at 02:00 to go home")[1]["at"] == "2026-12-04T02:00"
    assert one("wake me on Friday at five")[1]["at"] == "2026-12-04T05:00"


@pytest.mark.parametrize("said", LOOKALIKES)
def test_what_only_looks_like_an_order_runs_nothing(said: str) -> None:
    found = plan(said, NOW)
    # a courtesy ("good night") may be answered, as talk
    assert not found.calls and (not found.said or found.kind == "chat")
